// What the search asks of the world: build this, judge that. Backends implement it, tests fake it.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "fitness/builder.hpp"
#include "fitness/deadline.hpp"
#include "fitness/fitness.hpp"
#include "fitness/protocol.hpp"
#include "population/genome.hpp"

namespace evo {

/// A genome ready to be judged.
struct Built {
  std::filesystem::path library;
  std::string binary_digest; // equal digests compute the same at the same speed
  std::map<std::string, KernelResources> kernels;
  std::vector<int> probe_sizes; // where a CPU run is to happen; empty: the problem's sizes
};

/// The best so far.
struct Incumbent {
  std::string id;
  Built built;
  Fitness fitness;
};

struct Judgement {
  Fitness fitness;
  /// The incumbent's, where it was timed again beside a challenger. A failure dethrones it.
  std::optional<Fitness> incumbent;
  /// False: nothing shows yet that it is faster than the incumbent; it ranks, and makes no elite.
  bool confirmed = true;
  /// Not judged in this run: the verdict is an earlier one.
  bool known = false;
  /// Where judging had to build first: what there was came without a library.
  std::optional<Built> built = std::nullopt;
};

/// Whether the candidate replaces the best so far, which may have been judged afresh beside it.
bool makes_an_elite(const Judgement& judgement, const Incumbent* incumbent);

/// How contenders are verified: at which level, and on a card at which sizes.
struct VerifySettings {
  Level level = Level::Default;
  std::vector<int> sizes;
};

/// `fitness` and what its verification has found; a failure where that is one.
Fitness verified(Fitness fitness, VerifyResponse response);

/// The self-test leaves the policy out to try what stands behind it.
enum class Gates { All, WithoutPolicy };

class FitnessEvaluator {
public:
  virtual ~FitnessEvaluator() = default;

  /// All gates before the card: parse, policy, limits, compilers. Called from many threads. Blocks.
  virtual std::variant<Built, BuildFailure> build(const Genome& genome, std::stop_token stop,
                                                  Gates gates = Gates::All) const = 0;

  /// How long a candidate may take before it counts as hung, given the best so far.
  virtual std::chrono::milliseconds deadline(const Incumbent*) const {
    return deadline_without_incumbent;
  }

  /// Correctness and time. What would become the incumbent is verified too. Called from one thread
  /// at a time. Blocks. `incumbent` is nullptr before the first correct candidate.
  virtual Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                          std::stop_token stop) = 0;

  /// Through the cases that the level binds. `full`: through all, at every size, and on after a
  /// failure. Called as judge().
  virtual VerifyResponse verify(const Genome& genome, const Built& built, bool full,
                                std::stop_token stop) = 0;
};

} // namespace evo
