// Double-buffers the shared tiles of a reduction loop: while the block computes on one stage, the
// next tile is on its way from global memory, through registers, into the other stage.
//
//   before                            after "gemm/k0 double buffer"
//   for (k0 = 0; k0 < d; k0 += K) {   load tile 0 into stage 0            // prologue
//     load tile into shared memory    barrier
//     barrier                         for (k0 = 0; k0 + K < d; k0 += K) { // steady state
//     compute                           global memory of tile k0 + K -> registers
//     barrier                           compute on `stage`
//   }                                   registers -> next stage
//                                       barrier, stage = next stage
//                                     }
//                                     compute on `stage`                  // last step
//
// The computation keeps its order and expressions, so results keep every bit; tiles keep their
// layout behind a leading [gemm_stages].
//
// Precondition: a counted loop (`<`, constant positive step) with two barriers of its own between
// loads and computation. The loads write the tiles by plain assignments and depend on nothing that
// the loop changes but its counter; the computation writes registers only; nothing leaves an
// iteration early; the tiles are used in this loop alone, or behind it for what is written there
// (both files then compute the same), and may double (analysis/tile_storage.hpp). A double-buffered
// loop has one barrier, so it is not taken again.
//
// Expected gain: global memory's latency hides behind the computation and one barrier of two goes;
// it costs registers for a tile's share and twice the shared memory.
#include <clang/AST/Expr.h>

#include "mutators/analysis/first_iteration.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/buffered_loop.hpp"
#include "mutators/edited.hpp"
#include "mutators/mutator.hpp"
#include "mutators/register_staging.hpp"
#include "mutators/registry.hpp"

namespace evo {
namespace {

/// One loop's rewrite: everything known, nothing refused, text printed.
class DoubleBuffering {
public:
  DoubleBuffering(const Kernel& kernel, const Stages& stages, const SingleBuffered& before)
      : kernel_(kernel), stages_(stages), before_(before), loop_(before.loop),
        always_runs_(always_has_first_iteration(kernel, *stages.kernel, loop_)),
        staged_(kernel, stages, before) {}

  /// nullopt where a text cannot be edited, the loads cannot be split, or a tile has other uses.
  std::optional<std::vector<Edit>> edits();

private:
  std::string prologue();
  std::string has_next();
  std::string last_counter();
  std::string steady_state(const RegisterStaging& loads, const std::string& compute);
  std::string last_step(const std::string& compute, bool needs_counter);

  const Kernel& kernel_;
  const Stages& stages_;
  const SingleBuffered& before_;
  const CountedLoop& loop_;
  const bool always_runs_;
  BufferedLoop staged_;
};

std::string DoubleBuffering::prologue() {
  const bool needs_counter = staged_.uses_counter(before_.load);
  std::string load = needs_counter ? "const " + staged_.text(loop_.loop->getInit()) + "\n" : "";
  load += staged_.print(before_.load, staged_.on_stage("0", staged_.counter));
  std::string result = staged_.alignment_assertions();
  result += always_runs_ ? ""
                         : "if (" + staged_.first_counter() + " < " +
                               staged_.operand(loop_.limit, Binding::Sum) + ") {\n";
  result += before_.begins_with_barrier ? staged_.text(before_.barrier) + "\n" : "";
  result += in_braces(load, needs_counter || defines_variables(before_.load));
  return result + staged_.text(before_.barrier) + "\nint " + staged_.stage + " = 0;\n";
}

/// The loop's condition one step ahead. The limit exceeds the start here, so that a signed one
/// can give way; the counter stays alone on its side and the loop a counted one.
std::string DoubleBuffering::has_next() {
  const std::string stride = staged_.step(Binding::Product);
  const std::string limit = staged_.operand(loop_.limit, Binding::Sum);
  const bool is_signed = loop_.counter->getType()->isSignedIntegerType() &&
                         loop_.limit->getType()->isSignedIntegerType() &&
                         (loop_.step == nullptr || loop_.step->getType()->isSignedIntegerType());
  return is_signed ? staged_.counter + " < " + limit + " - " + stride
                   : staged_.counter + " + " + stride + " < " + limit;
}

std::string DoubleBuffering::steady_state(const RegisterStaging& loads,
                                          const std::string& compute) {
  const bool braces = defines_variables(before_.load);
  std::string result = "for (" + staged_.text(loop_.loop->getInit()) + " " + has_next() + "; " +
                       staged_.text(loop_.loop->getInc()) + ") {\n";
  result += "const int " + staged_.next_stage + " = (" + staged_.stage + " + 1) % " +
            staged_.stage_count + ";\n";
  if (staged_.uses_counter(before_.load)) {
    result += "const " + staged_.counter_type() + " " + staged_.next_counter + " = " +
              staged_.counter + " + " + staged_.step(Binding::Product) + ";\n";
  }
  result += loads.registers + in_braces(loads.fetch, braces) + compute;
  result += in_braces(loads.store, braces) + staged_.text(before_.barrier) + "\n";
  return result + staged_.stage + " = " + staged_.next_stage + ";\n}\n";
}

/// The counter's value in the last iteration.
std::string DoubleBuffering::last_counter() {
  const std::string limit = staged_.operand(loop_.limit, Binding::Sum);
  const std::string start = staged_.operand(loop_.start, Binding::Operand);
  const std::string stride = staged_.step(Binding::Operand);
  if (loop_.step_value == 1) {
    return limit + " - 1";
  }
  return constant_value(kernel_, *loop_.start) == 0
             ? "(" + limit + " - 1) / " + stride + " * " + stride
             : start + " + (" + limit + " - 1 - " + start + ") / " + stride + " * " + stride;
}

std::string DoubleBuffering::last_step(const std::string& compute, bool needs_counter) {
  std::string result;
  if (needs_counter) {
    result +=
        "const " + staged_.counter_type() + " " + staged_.counter + " = " + last_counter() + ";\n";
  }
  result = in_braces(result + compute, needs_counter || defines_variables(before_.compute));
  result += staged_.is_shared_memory_used_around() ? staged_.text(before_.barrier) + "\n" : "";
  return result + (always_runs_ ? "" : "}\n");
}

std::optional<std::vector<Edit>> DoubleBuffering::edits() {
  const auto places = staged_.places();
  const auto definitions = staged_.definitions_for_compute();
  if (!places || !definitions) {
    return std::nullopt;
  }
  const auto loads =
      split_loads(kernel_, stages_, before_.load, staged_.on_stage("0", staged_.next_counter),
                  staged_.on_stage(staged_.next_stage, staged_.next_counter), staged_.names);
  if (!loads) {
    return std::nullopt;
  }
  std::vector<Edit> edits = staged_.stage_dimensions();
  edits.push_back({places->before_tiles, 0,
                   "constexpr int " + staged_.stage_count + " = 2;\nstatic_assert(" +
                       staged_.stage_count + " == 2);\n\n"});
  if (!loads->constants.empty()) {
    edits.push_back({places->before_kernel, 0, loads->constants + "\n"});
  }
  const std::vector<Edit> current = staged_.on_stage(staged_.stage, staged_.counter);
  const std::string compute =
      staged_.print(*definitions, current) + staged_.print(before_.compute, current);
  const bool needs_counter =
      staged_.uses_counter(*definitions) || staged_.uses_counter(before_.compute);
  edits.push_back({places->before_loop, 0, prologue()});
  edits.push_back({places->loop.begin, places->loop.length(),
                   steady_state(*loads, in_braces(compute, !definitions->empty())) +
                       last_step(compute, needs_counter)});
  sort_edits(edits);
  const bool legal =
      staged_.editable() && (!staged_.are_tiles_used_behind() || computes_the_same(kernel_, edits));
  return legal ? std::optional(edits) : std::nullopt;
}

std::optional<std::vector<Edit>> double_buffered(const Kernel& kernel, const Stages& stages) {
  const auto before = find_single_buffered(kernel, stages);
  const bool legal = before && can_hold(kernel, stages, before->storage, 2);
  return legal ? DoubleBuffering(kernel, stages, *before).edits() : std::nullopt;
}

class DoubleBuffer : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "double_buffer",
        .summary = "loads the next tile while computing on this one: hides global memory's latency "
                   "for twice the shared memory",
        .before = "for (...) { load; __syncthreads(); compute; __syncthreads(); }",
        .after = "load; __syncthreads();\n"
                 "for (...) { fetch next; compute; store next; __syncthreads(); }\n"
                 "compute;",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const std::vector<DeviceLoop> loops = device_loops(kernel);
    for (const Stages& stages : find_stages(kernel)) {
      const DeviceLoop* loop = find_loop(loops, *stages.loop);
      if (loop == nullptr) {
        continue;
      }
      if (auto edits = double_buffered(kernel, stages)) {
        result.push_back({loop->name + " double buffer", std::move(*edits)});
      }
    }
    return result;
  }
};

} // namespace

const Mutator& double_buffer() {
  static const DoubleBuffer mutator;
  return mutator;
}

} // namespace evo
