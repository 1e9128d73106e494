// selftest: is the judge to be trusted?
#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "fitness/private_folder.hpp"
#include "population/backend.hpp"
#include "population/commands.hpp"
#include "population/data_folder.hpp"
#include "population/files.hpp"
#include "population/interruption.hpp"
#include "population/selftest.hpp"
#include "population/summary.hpp"

namespace evo {
namespace {

constexpr std::size_t bred_kernels = 10;

/// The seeds come first: the best of them is the incumbent of what follows.
std::vector<Trial> all_trials(const std::vector<Specimen>& zoo, const std::vector<Genome>& seeds,
                              const BackendInfo& backend, bool with_bred) {
  std::vector<Trial> trials = seed_trials(seeds);
  std::ranges::move(specimen_trials(zoo, backend.measured()), std::back_inserter(trials));
  if (with_bred) {
    std::ranges::move(bred_trials(seeds, {mutators(), backend.target}, bred_kernels),
                      std::back_inserter(trials));
  }
  return trials;
}

} // namespace

int selftest_command(const Options& options, const SelftestOptions& selftest) {
  const Problem problem = load_problem(options);
  const std::vector<Specimen> zoo = load_zoo(
      selftest.zoo.empty() ? data_folder() / "tests" / "adversarial" : selftest.zoo, selftest.only);
  const std::vector<Genome> seeds = load_seeds(problem, target_of(options));
  const Interruption interruption({});
  // Nothing that earlier runs have built or written down.
  const PrivateFolder folder(std::filesystem::temp_directory_path());
  Options fresh = options;
  fresh.population = folder.path();
  const OpenBackend backend = open_backend(fresh, problem, interruption.token(), many_candidates);
  const std::vector<Trial> trials = all_trials(zoo, seeds, backend.info, selftest.only.empty());
  fmt::print("Backend: {}\n", describe(backend.info));
  const auto print = [](const TrialResult& result) {
    fmt::print("{}", to_line(result));
    std::fflush(stdout);
  };
  const SelftestReport report =
      run_selftest(*backend.evaluator, trials, options.search.jobs, print, interruption.token());
  fmt::print("{}", to_line(report));
  if (!selftest.json.empty()) {
    nlohmann::json record = to_record(report);
    record["backend"] = describe(backend.info);
    write_text(selftest.json, record.dump(2) + "\n");
  }
  return report.passed() ? 0 : 1;
}

} // namespace evo
