// Whether a search survives what its candidates do: the same candidates judged twice, the second
// time with some of them replaced by kernels that hang, crash and trap.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "population/evaluator.hpp"
#include "population/individual.hpp"

namespace evo {

struct StressSettings {
  int candidates = 300; // every tenth is replaced, so at least 10
  std::uint64_t seed = 1;
  int jobs = 1;
  std::function<void(const std::string&)> progress = [](const std::string&) {}; // a line per step
};

/// One pass over all candidates, seeds not counted.
struct StressPass {
  int candidates = 0;
  double seconds = 0;
  double hung_seconds = 0;         // of these, until the deadlines of hanging candidates
  std::optional<Individual> best;  // of those that are the same in both passes
  std::map<Verdict, int> replaced; // verdicts of those that are not

  /// Candidates per second, deadlines left out.
  double rate() const { return candidates / (seconds - hung_seconds); }
};

struct StressReport {
  StressPass undisturbed;
  StressPass disturbed;

  /// The share of throughput that the disturbance costs outside the deadlines.
  double loss() const { return 1 - disturbed.rate() / undisturbed.rate(); }
  /// The same best candidate, or one that is as fast within 1 %.
  bool same_winner() const;
  /// None of the replaced candidates was taken for a good one or failed to build.
  bool all_replaced_failed() const;
  bool passed() const;
};

/// Builds everything first, so that both passes judge only. InputError for too few candidates, and
/// for seeds of which nothing can be bred, or whose entry is not found.
StressReport stress(const StressSettings& settings, const std::vector<Genome>& seeds,
                    const Dialect& dialect, const std::string& entry, FitnessEvaluator& evaluator,
                    std::stop_token stop);

/// A few lines, with the verdict of the whole last.
std::string describe(const StressReport& report);

enum class Sabotage { Crash, Trap, Hang };

/// The candidate, with an entry that begins by doing so: a store to null, a kernel that traps, a
/// kernel that never ends. InputError where it has no such extern "C" entry.
Genome sabotaged(const Genome& genome, Sabotage how, const std::string& entry);

} // namespace evo
