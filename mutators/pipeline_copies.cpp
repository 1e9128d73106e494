// Loads the shared tiles of a reduction loop by asynchronous copies, several stages ahead: nothing
// waits in registers, and while the block computes on one stage, the next ones are on their way.
//
//   before                            after "gemm/k0 stages 3 async"
//   for (k0 = 0; k0 < d; k0 += K) {   for (stage = 0; stage < stages - 1; ++stage) {   // prologue
//     load tile into shared memory      if there is a tile stage * K, copy it into `stage`
//     barrier                           commit
//     compute                         }
//     barrier                         for (k0 = 0; k0 < d; k0 += K) {
//   }                                   wait for all groups of copies but stages - 2
//                                       barrier
//                                       if there is a tile k0 + (stages - 1) * K,
//                                         copy it into the stage freed last
//                                       commit
//                                       compute on `stage`
//                                     }
//
// An element becomes a copy of 4 bytes, which fills with zeros what is out of range; a vector one
// of 16 (or 8) where it is loaded at once, with copies of 4 beside it for where it is not. The
// computation keeps its order and expressions, so results keep every bit.
//
// "gemm/k0 stages 3 async x" sends only x so, and w through registers as double_buffer does: before
// the computation w is read from global memory, and after it written to the stage freed last. That
// stage is read not before the next step, and thus behind its barrier, even if there are two.
//
// Precondition: as for double_buffer, and the loads of what is asynchronous only copy
// (copy_source.hpp). The blocks at the corners of a small problem must then read what they read
// before, without a race or an access to what has not arrived.
//
// Expected gain: global memory's latency hides behind several tiles' computation, one barrier of
// two goes, and so do the registers and the stores of a tile in flight; for as many times the
// shared memory. A tile transposed on the way would need a copy for each element, where registers
// take a vector at once.
#include <algorithm>
#include <array>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/footprint.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/buffered_loop.hpp"
#include "mutators/edited.hpp"
#include "mutators/includes.hpp"
#include "mutators/mutator.hpp"
#include "mutators/register_staging.hpp"
#include "mutators/registry.hpp"

namespace evo {
namespace {

constexpr std::array stage_counts{2, 3, 4, 5};
constexpr int most_with_registers = 4;   // stages
constexpr std::array tail_sizes{67, 80}; // an odd one, and one of whole, aligned groups

/// One loop's rewrite: everything known, nothing refused, text printed.
class Pipelining {
public:
  /// The tiles `in_registers` wait there, the others are copied.
  Pipelining(const Kernel& kernel, const Stages& stages, const SingleBuffered& before,
             const std::vector<Memory>& in_registers)
      : kernel_(kernel), stages_(stages), before_(before), in_registers_(in_registers),
        staged_(kernel, stages, before) {}

  /// nullopt where a text cannot be edited, a load does more than the copying it should do, or a
  /// tile has other uses than in the loop and behind it.
  std::optional<std::vector<Edit>> edits(int stage_count);
  /// Once there are edits.
  bool are_tiles_used_behind() const { return staged_.are_tiles_used_behind(); }

private:
  std::string is_within_limit(const std::string& counter) {
    return counter + " < " + staged_.operand(before_.loop.limit, Binding::Sum);
  }
  std::string if_within_limit(const std::vector<std::string>& loads, const std::string& counter);
  std::string prologue(const AsyncLoads& loads);
  std::string loop(const AsyncLoads& loads, const std::string& compute);

  const Kernel& kernel_;
  const Stages& stages_;
  const SingleBuffered& before_;
  const std::vector<Memory>& in_registers_;
  BufferedLoop staged_;
};

/// Loads that leave tiles beyond the last one alone, each in a scope of its own. Their own guards
/// might do as well, but one branch around them all keeps the compiler from scattering them among
/// the computation, whose order of registers then suffers.
std::string Pipelining::if_within_limit(const std::vector<std::string>& loads,
                                        const std::string& counter) {
  const bool scoped = loads.size() > 1 && defines_variables(before_.load);
  std::string all;
  for (const std::string& load : loads) {
    all += load.empty() ? "" : in_braces(load, scoped);
  }
  return all.empty() ? "" : "if (" + is_within_limit(counter) + ") {\n" + all + "}\n";
}

/// Every tile's copies are one group, also beyond the last tile, where it may be empty.
std::string Pipelining::prologue(const AsyncLoads& loads) {
  const std::string& stage = staged_.stage;
  const bool from_zero = constant_value(kernel_, *before_.loop.start) == 0;
  const std::string start = from_zero ? "" : staged_.first_counter() + " + ";
  std::string result = staged_.alignment_assertions();
  result += before_.begins_with_barrier ? staged_.text(before_.barrier) + "\n" : "";
  result += "for (int " + stage + " = 0; " + stage + " < " + staged_.stage_count + " - 1; ++" +
            stage + ") {\n";
  result += "const " + staged_.counter_type() + " " + staged_.counter + " = " + start + stage +
            " * " + staged_.step(Binding::Operand) + ";\n";
  result += if_within_limit({loads.first_copies, loads.first_assignments}, staged_.counter);
  result += "__pipeline_commit();\n";
  return result + "}\nint " + stage + " = 0;\n";
}

std::string Pipelining::loop(const AsyncLoads& loads, const std::string& compute) {
  const clang::ForStmt& loop = *before_.loop.loop;
  const std::string& stage = staged_.stage;
  const std::string& next_counter = staged_.next_counter;
  const std::string last = staged_.stage_count + " - 1";
  std::string result = "for (" + staged_.text(loop.getInit()) + " " +
                       is_within_limit(staged_.counter) + "; " + staged_.text(loop.getInc()) +
                       ") {\n";
  result += "__pipeline_wait_prior(" + staged_.stage_count + " - 2);\n";
  result += staged_.text(before_.barrier) + "\n";
  result += "const int " + staged_.next_stage + " = " + stage + " == 0 ? " + last + " : " + stage +
            " - 1;\n";
  result += "const " + staged_.counter_type() + " " + next_counter + " = " + staged_.counter +
            " + (" + last + ") * " + staged_.step(Binding::Operand) + ";\n";
  result += loads.registers + if_within_limit({loads.next_fetch, loads.next_copies}, next_counter);
  result += "__pipeline_commit();\n" + compute;
  result += if_within_limit({loads.next_store}, next_counter);
  result += stage + " = " + stage + " == " + last + " ? 0 : " + stage + " + 1;\n}\n";
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
      copy_loads(kernel_, stages_, before_.load, in_registers_,
                 staged_.on_stage(staged_.stage, staged_.counter),
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
  edits.push_back({places->before_loop, 0, loads->local_constants + prologue(*loads)});
  edits.push_back({places->loop.begin, places->loop.length(), loop(*loads, compute)});
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

/// What the launches of a function read and write at the trial sizes.
class Trials {
public:
  Trials(const Kernel& kernel, const clang::FunctionDecl& function);

  /// Whether they still read and write the same after `edits`; false where a trial failed before.
  bool are_same_after(const std::vector<Edit>& edits) const;

private:
  struct Trial {
    std::int64_t size = 0;
    std::size_t launch = 0; // of all of the file's
    std::optional<Footprint> use;
  };

  const Kernel& kernel_;
  std::optional<EntryDims> dims_;
  std::vector<Trial> trials_;
};

Trials::Trials(const Kernel& kernel, const clang::FunctionDecl& function)
    : kernel_(kernel), dims_(find_dims(kernel)) {
  for (const std::int64_t size : tail_sizes) {
    const auto launches =
        dims_ ? launches_at(kernel, *dims_, size) : std::vector<EvaluatedLaunch>{};
    const std::size_t known = trials_.size();
    for (std::size_t i = 0; i < launches.size(); ++i) {
      if (launches[i].launch.kernel == &function) {
        trials_.push_back({size, i, corners(kernel, launches[i])});
      }
    }
    if (trials_.size() == known) {
      trials_.push_back({size, 0, std::nullopt});
    }
  }
}

bool Trials::are_same_after(const std::vector<Edit>& edits) const {
  const auto after = edited(kernel_, edits);
  return after && std::ranges::all_of(trials_, [&](const Trial& trial) {
           if (!trial.use) {
             return false;
           }
           const auto launches = launches_at(*after, *dims_, trial.size);
           const auto use = trial.launch < launches.size() ? corners(*after, launches[trial.launch])
                                                           : std::nullopt;
           return use && same_use(*trial.use, *use);
         });
}

/// Which tiles may wait in registers while the others are asynchronous: those that must, or none or
/// any one.
std::vector<std::vector<Memory>> transports(const Kernel& kernel, const Stages& stages,
                                            const SingleBuffered& before) {
  const auto computed = computed_tiles(kernel, stages, before.load);
  if (!computed || computed->size() == stages.tiles.size()) {
    return {};
  }
  std::vector<std::vector<Memory>> result{*computed};
  if (computed->empty() && stages.tiles.size() > 1) {
    std::ranges::transform(stages.tiles, std::back_inserter(result),
                           [](const Memory& tile) { return std::vector<Memory>{tile}; });
  }
  return result;
}

/// "stages 3 async", and the names of what is asynchronous if it is not all.
std::string label(const Stages& stages, const std::vector<Memory>& in_registers, int count) {
  std::string result = "stages " + std::to_string(count) + " async";
  for (const Memory& tile : stages.tiles) {
    if (!in_registers.empty() && std::ranges::count(in_registers, tile) == 0) {
      result += " " + (tile.member != nullptr ? tile.member->getNameAsString()
                                              : tile.variable->getNameAsString());
    }
  }
  return result;
}

/// One rewrite, without the loop's name, for each number of stages that fits.
std::vector<Rewrite> pipelined(const Kernel& kernel, const Stages& stages,
                               const SingleBuffered& before, const Trials& trials,
                               const std::vector<Memory>& in_registers) {
  std::vector<Rewrite> result;
  const auto edits = [&](int count) {
    return Pipelining(kernel, stages, before, in_registers).edits(count);
  };
  Pipelining first(kernel, stages, before, in_registers);
  const auto fewest = first.edits(stage_counts.front());
  if (!fewest || !trials.are_same_after(*fewest) ||
      (first.are_tiles_used_behind() && !computes_the_same(kernel, *fewest))) {
    return result;
  }
  for (const int count : stage_counts) {
    if (can_hold(kernel, stages, before.storage, count) &&
        (in_registers.empty() || count <= most_with_registers)) {
      result.push_back({label(stages, in_registers, count), *edits(count)});
    }
  }
  return result;
}

std::vector<Rewrite> pipelined(const Kernel& kernel, const Stages& stages) {
  std::vector<Rewrite> result;
  const auto before = find_single_buffered(kernel, stages);
  if (!before || !can_hold(kernel, stages, before->storage, stage_counts.front())) {
    return result;
  }
  const Trials trials(kernel, *stages.kernel);
  for (const std::vector<Memory>& in_registers : transports(kernel, stages, *before)) {
    std::ranges::move(pipelined(kernel, stages, *before, trials, in_registers),
                      std::back_inserter(result));
  }
  return result;
}

class PipelineCopies : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "pipeline_copies",
        .summary = "copies the next tiles asynchronously, 2 to 5 stages, one of them also through "
                   "registers: hides global memory's latency for more shared memory",
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
      const DeviceLoop* loop = find_loop(loops, *stages.loop);
      if (loop == nullptr) {
        continue;
      }
      for (Rewrite& rewrite : pipelined(kernel, stages)) {
        result.push_back({loop->name + " " + rewrite.label, std::move(rewrite.edits)});
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
