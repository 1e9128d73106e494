// climb: what each rewrite of a recorded trail is worth.
#include <fmt/core.h>

#include "fitness/problem.hpp"
#include "population/backend.hpp"
#include "population/climb.hpp"
#include "population/commands.hpp"
#include "population/files.hpp"
#include "population/interruption.hpp"
#include "population/summary.hpp"
#include "population/trail_file.hpp"

namespace evo {

int climb_command(const Options& options, const std::filesystem::path& seed_file,
                  const std::filesystem::path& trail_file, bool leave_one_out) {
  const Problem problem = load_problem(options);
  const Interruption interruption({});
  const OpenBackend backend = open_backend(options, problem, interruption.token());
  const Dialect dialect{mutators(), backend.info.target};
  const Genome seed = load_genome(seed_file, dialect.target);
  const std::vector<Gene> trail = load_trail(trail_file);
  std::vector<Rung> rungs =
      leave_one_out ? ablation(seed, trail, dialect) : climb(seed, trail, dialect);
  judge(rungs, *backend.evaluator, options.search.jobs, interruption.token());
  if (const std::string reason = interruption.reason(); !reason.empty()) {
    fmt::print(stderr, "evo: stopped by {}\n", reason);
    return 1;
  }
  fmt::print("{}\nBackend: {}.\n",
             leave_one_out ? ablation_table(rungs, problem) : climb_table(rungs, problem),
             describe(backend.info));
  return 0;
}

} // namespace evo
