// Loads the shared tiles of a reduction loop by asynchronous copies, several stages ahead: nothing
// waits in registers, and while the block computes on one stage, the next ones are on their way.
//
//   before                            after "gemm/k0 stages 3 async"
//   for (k0 = 0; k0 < d; k0 += K) {   for (stage = 0; stage < stages - 1; ++stage) {   // prologue
//     load tile into shared memory      copy tile stage * K into `stage`
//     barrier                           commit
//     compute                         }
//     barrier                         for (k0 = 0; k0 < d; k0 += K) {
//   }                                   wait for all groups of copies but stages - 2
//                                       barrier
//                                       copy tile k0 + (stages - 1) * K into the stage freed last
//                                       commit
//                                       compute on `stage`
//                                     }
//                                     wait for all groups
//
// An element becomes a copy of 4 bytes, which fills with zeros what is out of range; a vector one
// of 16 (or 8) where it is loaded at once, with copies of 4 beside it for where it is not. The
// computation keeps its order and expressions, so results keep every bit.
//
// Precondition: as for double_buffer, and the loads only copy (copy_source.hpp). The blocks at the
// corners of a small problem must then read what they read before, without a race or an access to
// what has not arrived; where tiles beyond the last one would be read, a condition keeps them out.
//
// Expected gain: global memory's latency hides behind several tiles' computation, one barrier of
// two goes, and so do the registers and the stores of a tile in flight; for as many times the
// shared memory.
#include <algorithm>
#include <array>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/first_iteration.hpp"
#include "mutators/analysis/footprint.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/buffered_loop.hpp"
#include "mutators/includes.hpp"
#include "mutators/mutator.hpp"
#include "mutators/register_staging.hpp"
#include "mutators/registry.hpp"

namespace evo {
namespace {

constexpr std::array stage_counts{2, 3, 4, 5};
constexpr std::array trial_sizes{67, 80}; // an odd one, and one of whole, aligned groups

/// One loop's rewrite: everything known, nothing refused, text printed.
class Pipelining {
public:
  /// `to_limit`: tiles beyond the loop's limit are not copied. Otherwise the copies' own guards
  /// keep out of them.
  Pipelining(const Kernel& kernel, const Stages& stages, const SingleBuffered& before,
             bool to_limit)
      : kernel_(kernel), stages_(stages), before_(before), to_limit_(to_limit),
        staged_(kernel, stages, before) {}

  /// nullopt where a text cannot be edited, a load does more than copying, or a tile has other
  /// uses.
  std::optional<std::vector<Edit>> edits(int stage_count);

private:
  std::string is_within_limit(const std::string& counter) {
    return counter + " < " + staged_.operand(before_.loop.limit, Binding::Sum);
  }
  std::string copies(const std::string& text, const std::string& counter);
  std::string prologue(const std::string& copies);
  std::string loop(const std::string& copies, const std::string& compute);

  const Kernel& kernel_;
  const Stages& stages_;
  const SingleBuffered& before_;
  const bool to_limit_;
  BufferedLoop staged_;
};

/// A tile's copies as one group, which is empty beyond the last tile.
std::string Pipelining::copies(const std::string& text, const std::string& counter) {
  const std::string guarded = to_limit_ ? "if (" + is_within_limit(counter) + ") {\n" + text + "}\n"
                                        : in_braces(text, defines_variables(before_.load));
  return guarded + "__pipeline_commit();\n";
}

std::string Pipelining::prologue(const std::string& text) {
  const bool from_zero = constant_value(kernel_, *before_.loop.start) == 0;
  const std::string start = from_zero ? "" : staged_.first_counter() + " + ";
  return staged_.alignment_assertions() +
         (before_.begins_with_barrier ? staged_.text(before_.barrier) + "\n" : "") + "for (int " +
         staged_.stage + " = 0; " + staged_.stage + " < " + staged_.stage_count + " - 1; ++" +
         staged_.stage + ") {\nconst " + staged_.counter_type() + " " + staged_.counter + " = " +
         start + staged_.stage + " * " + staged_.step(Binding::Operand) + ";\n" +
         copies(text, staged_.counter) + "}\nint " + staged_.stage + " = 0;\n";
}

std::string Pipelining::loop(const std::string& text, const std::string& compute) {
  const clang::ForStmt& loop = *before_.loop.loop;
  const std::string& stage = staged_.stage;
  const std::string last = staged_.stage_count + " - 1";
  std::string result = "for (" + staged_.text(loop.getInit()) + " " +
                       is_within_limit(staged_.counter) + "; " + staged_.text(loop.getInc()) +
                       ") {\n";
  result += "__pipeline_wait_prior(" + staged_.stage_count + " - 2);\n";
  result += staged_.text(before_.barrier) + "\n";
  result += "const int " + staged_.next_stage + " = " + stage + " == 0 ? " + last + " : " + stage +
            " - 1;\n";
  result += "const " + staged_.counter_type() + " " + staged_.next_counter + " = " +
            staged_.counter + " + (" + last + ") * " + staged_.step(Binding::Operand) + ";\n";
  result += copies(text, staged_.next_counter) + compute;
  result += stage + " = " + stage + " == " + last + " ? 0 : " + stage + " + 1;\n}\n";
  // Zeros for tiles beyond the last may still be on their way.
  result += to_limit_ ? "" : "__pipeline_wait_prior(0);\n";
  return result +
         (staged_.is_shared_memory_used_around() ? staged_.text(before_.barrier) + "\n" : "");
}

std::optional<std::vector<Edit>> Pipelining::edits(int stage_count) {
  const auto places = staged_.places();
  const auto definitions = staged_.definitions_for_compute();
  if (!places || !definitions) {
    return std::nullopt;
  }
  const auto loads =
      copy_loads(kernel_, stages_, before_.load, staged_.on_stage(staged_.stage, staged_.counter),
                 staged_.on_stage(staged_.next_stage, staged_.next_counter), staged_.names);
  if (!loads) {
    return std::nullopt;
  }
  std::vector<Edit> edits = staged_.stage_dimensions();
  edits.push_back({places->before_tiles, 0,
                   "constexpr int " + staged_.stage_count + " = " + std::to_string(stage_count) +
                       ";\nstatic_assert(" + staged_.stage_count + " >= 2);\n\n"});
  if (!loads->constants.empty()) {
    edits.push_back({places->before_kernel, 0, loads->constants + "\n"});
  }
  if (const auto edit = include(kernel_, "cuda_pipeline.h")) {
    edits.push_back(*edit);
  }
  const std::vector<Edit> current = staged_.on_stage(staged_.stage, staged_.counter);
  const std::string compute =
      staged_.print(*definitions, current) + staged_.print(before_.compute, current);
  edits.push_back({places->before_loop, 0, loads->local_constants + prologue(loads->first)});
  edits.push_back({places->loop.begin, places->loop.length(), loop(loads->next, compute)});
  sort_edits(edits);
  return staged_.editable() ? std::optional(edits) : std::nullopt;
}

/// What the blocks at the corners of a grid do; nothing where one cannot be followed, or is wrong.
std::optional<Footprint> corners(const Kernel& kernel, const EvaluatedLaunch& launch) {
  std::vector<Extent3> blocks;
  for (const int y : std::set{0, launch.grid.y - 1}) {
    for (const int x : std::set{0, launch.grid.x - 1}) {
      blocks.push_back({x, y, 0});
    }
  }
  Evaluator evaluator(kernel);
  auto found = footprint(evaluator, launch, blocks);
  auto* use = std::get_if<Footprint>(&found);
  return use == nullptr ? std::nullopt : std::optional(std::move(*use));
}

/// Whether the launches of `function` read and write the same elements before and after.
bool same_footprint(const Kernel& before, const clang::FunctionDecl& function,
                    const std::vector<Edit>& edits) {
  const auto parsed = Kernel::parse(apply_edits(before.source(), edits), before.target());
  const auto* after = std::get_if<Kernel>(&parsed);
  const auto dims = find_dims(before);
  if (after == nullptr || !dims) {
    return false;
  }
  return std::ranges::all_of(trial_sizes, [&](std::int64_t size) {
    const auto old_launches = launches_at(before, *dims, size);
    const auto new_launches = launches_at(*after, *dims, size);
    bool launched = false;
    for (std::size_t i = 0; i < std::min(old_launches.size(), new_launches.size()); ++i) {
      if (old_launches[i].launch.kernel == &function) {
        const auto old_use = corners(before, old_launches[i]);
        const auto new_use = corners(*after, new_launches[i]);
        launched = old_use && new_use && same_use(*old_use, *new_use);
        if (!launched) {
          return false;
        }
      }
    }
    return launched;
  });
}

/// The edits for each number of stages that fits, by its number.
std::vector<std::pair<int, std::vector<Edit>>> pipelined(const Kernel& kernel,
                                                         const Stages& stages) {
  std::vector<std::pair<int, std::vector<Edit>>> result;
  const auto before = find_single_buffered(kernel, stages);
  if (!before || !can_hold(kernel, stages, before->storage, stage_counts.front())) {
    return result;
  }
  const bool always_runs = always_has_first_iteration(kernel, *stages.kernel, before->loop);
  for (const bool to_limit : {false, true}) {
    const auto edits = Pipelining(kernel, stages, *before, to_limit).edits(stage_counts.front());
    if (!edits || (!to_limit && !always_runs) || !same_footprint(kernel, *stages.kernel, *edits)) {
      continue;
    }
    for (const int count : stage_counts) {
      if (can_hold(kernel, stages, before->storage, count)) {
        result.emplace_back(count, *Pipelining(kernel, stages, *before, to_limit).edits(count));
      }
    }
    return result;
  }
  return result;
}

class PipelineCopies : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "pipeline_copies",
        .summary = "copies the next tiles asynchronously, 2 to 5 stages: hides global memory's "
                   "latency without registers for more shared memory",
        .before = "for (...) { load; __syncthreads(); compute; __syncthreads(); }",
        .after = "for (stage ...) { copy asynchronously; __pipeline_commit(); }\n"
                 "for (...) {\n"
                 "  __pipeline_wait_prior(stages - 2); __syncthreads();\n"
                 "  copy stages - 1 tiles ahead; __pipeline_commit();\n"
                 "  compute;\n"
                 "}",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const std::vector<DeviceLoop> loops = device_loops(kernel);
    for (const Stages& stages : find_stages(kernel)) {
      const auto loop =
          std::ranges::find(loops, stages.loop, [](const DeviceLoop& l) { return l.counted.loop; });
      if (loop == loops.end()) {
        continue;
      }
      for (auto& [count, edits] : pipelined(kernel, stages)) {
        result.push_back(
            {loop->name + " stages " + std::to_string(count) + " async", std::move(edits)});
      }
    }
    return result;
  }
};

} // namespace

const Mutator& pipeline_copies() {
  static const PipelineCopies mutator;
  return mutator;
}

} // namespace evo
