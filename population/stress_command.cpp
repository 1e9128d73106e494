// stress: what crashing and hanging candidates cost a search.
#include <string>

#include <fmt/core.h>

#include "population/backend.hpp"
#include "population/commands.hpp"
#include "population/interruption.hpp"
#include "population/stress.hpp"

namespace evo {

int stress_command(const Options& options, int candidates) {
  const Problem problem = load_problem(options);
  const std::vector<Genome> seeds = load_seeds(problem, target_of(options));
  const Interruption interruption({});
  const OpenBackend backend = open_backend(options, problem, interruption.token(), many_candidates);
  const StressReport report =
      stress({.candidates = candidates,
              .seed = options.search.seed,
              .jobs = options.search.jobs,
              .progress = [](const std::string& line) { fmt::print(stderr, "{}\n", line); }},
             seeds, {mutators(), backend.info.target}, problem.entry, *backend.evaluator,
             interruption.token());
  if (const std::string reason = interruption.reason(); !reason.empty()) {
    fmt::print(stderr, "evo: stopped by {}\n", reason);
    return 1;
  }
  fmt::print("{}", describe(report));
  return report.passed() ? 0 : 1;
}

} // namespace evo
