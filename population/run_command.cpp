#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "population/backend.hpp"
#include "population/commands.hpp"
#include "population/confirmation.hpp"
#include "population/files.hpp"
#include "population/founders.hpp"
#include "population/interruption.hpp"
#include "population/recorder.hpp"
#include "population/remembering_evaluator.hpp"
#include "population/summary.hpp"
#include "population/version.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr double gib = 1024.0 * 1024 * 1024;
constexpr Seconds most_for_confirmation{20}; // a fresh worker, and five kernels in it

std::optional<Seconds> budget(const Options& options) {
  return options.time_budget_s ? std::optional(Seconds(*options.time_budget_s)) : std::nullopt;
}

/// What the search may take, so that its winner can still be confirmed.
std::optional<Seconds> search_budget(const Options& options) {
  const auto whole = budget(options);
  return whole && options.backend != BackendChoice::Model
             ? std::optional(*whole - std::min(*whole / 10, most_for_confirmation))
             : whole;
}

/// Of the budget, since `start`; never negative.
std::optional<Seconds> rest_of_budget(const Options& options, Clock::time_point start) {
  const auto whole = budget(options);
  return whole ? std::optional(std::max(Seconds(0), *whole - Seconds(Clock::now() - start)))
               : std::nullopt;
}

/// Exports the winner again, with the figures of the final. A final that cannot be held leaves the
/// export as it is.
void confirm_winner(const Archive& archive, const OpenBackend& backend, const Problem& problem,
                    const Snapshot& snapshot, Recorder& recorder, std::stop_token stop) {
  std::optional<Confirmation> confirmation;
  std::string why = "there was no time, or nobody was left";
  try {
    confirmation = confirm(archive, *backend.evaluator, *backend.timer, problem.sizes, stop);
  } catch (const std::runtime_error& no_worker) {
    why = no_worker.what();
  }
  if (!confirmation) {
    fmt::print("The winner is not confirmed: {}\n", why);
    return;
  }
  fmt::print("{}", report(*confirmation));
  snapshot.confirm(to_record(*confirmation));
  const Finalist& finalist = confirmation->finalists[confirmation->winner];
  Individual winner = finalist.individual;
  winner.fitness = finalist.confirmed;
  recorder.better(winner);
}

/// Finds out now, not after the first judgement, that the export cannot be written.
void check_writable(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (fs::is_directory(file) || access(folder.c_str(), W_OK) != 0) {
    throw InputError(fmt::format("cannot write {}: {}; choose another --out", file.string(),
                                 fs::is_directory(file)     ? "it is a folder"
                                 : fs::is_directory(folder) ? "its folder is not writable"
                                                            : "there is no such folder"));
  }
}

fs::path store_file(const Options& options) {
  return options.store.empty() ? options.population / "store.sqlite" : options.store;
}

std::string describe(const Store& store, const Options& options, std::size_t founders) {
  const std::string file = store_file(options).string();
  return options.fresh ? fmt::format("{}, only added to", file)
                       : fmt::format("{}, {} verdicts known, {} founders from earlier runs", file,
                                     store.size(), founders);
}

nlohmann::json run_json(const Options& options, const Problem& problem, const fs::path& out,
                        const BackendInfo& backend) {
  nlohmann::json seeds = nlohmann::json::array();
  for (const fs::path& seed : problem.seeds) {
    seeds.push_back(fs::absolute(seed).string());
  }
  nlohmann::json json{{"evo", version},
                      {"generations", options.search.generations},
                      {"pop", options.search.population},
                      {"seed", options.search.seed},
                      {"jobs", options.search.jobs},
                      {"without", options.without},
                      {"time_budget_s", nullptr},
                      {"problem", fs::absolute(options.problem).string()},
                      {"seeds", seeds},
                      {"sizes", problem.sizes},
                      {"out", out.string()},
                      {"backend", backend.measured() ? "cuda" : "model"},
                      {"measured", backend.measured()},
                      {"card", backend.card},
                      {"target", backend.target.arch},
                      {"toolkit", backend.toolkit},
                      {"driver", backend.driver},
                      {"reference_precision", backend.reference_precision},
                      {"level", to_string(options.level)}};
  if (options.time_budget_s) {
    json["time_budget_s"] = *options.time_budget_s;
  }
  return json;
}

ProgressSettings progress_settings(const Options& options) {
  ProgressSettings settings{.generations = options.search.generations,
                            .population = options.search.population,
                            .budget = {},
                            .terminal = isatty(STDOUT_FILENO) == 1};
  if (const auto time = budget(options)) {
    settings.budget = std::chrono::duration_cast<std::chrono::seconds>(*time);
  }
  return settings;
}

} // namespace

int run_command(const Options& options) {
  const Problem problem = load_problem(options);
  const std::vector<Genome> seeds = load_seeds(problem, target_of(options));
  const std::vector<const Mutator*> chosen = mutators_of(options);
  const fs::path out = options.out.empty() ? fs::path(problem.output_file) : options.out;
  std::optional<Genome> incumbent;
  if (!options.incumbent.empty()) {
    incumbent = load_genome(options.incumbent, target_of(options));
  }
  check_writable(out);

  const Snapshot snapshot(options.population, options.search.seed);
  const auto start = Clock::now();
  std::optional<Interruption> interruption(std::in_place, search_budget(options));
  const OpenBackend backend =
      open_backend(options, problem, interruption->token(), many_candidates);
  snapshot.describe(run_json(options, problem, out, backend.info));
  if (!backend.info.note.empty()) {
    fmt::print("No card is used: {}\n", backend.info.note);
  }
  for (const std::string& remark : backend.info.remarks) {
    fmt::print("Note: {}\n", remark);
  }
  fmt::print("Backend: {}\nRun: {}\n", describe(backend.info), snapshot.folder().string());
  if (!backend.info.conditions_missing.empty()) {
    fmt::print("Of the card, {}\n", backend.info.conditions_missing);
  }

  Store store(store_file(options), context_of(problem, backend.info, options.level,
                                              options.search.seed, options.sanitizer));
  const std::vector<Founder> found_before =
      options.fresh ? std::vector<Founder>{} : founders(store);
  fmt::print("Store: {}\n", describe(store, options, found_before.size()));

  Exporter exporter(problem, backend.info, options.search.seed, out);
  if (incumbent) {
    exporter.keep(incumbent->id, read_text(options.incumbent));
  }
  Progress progress(progress_settings(options), stdout);
  Recorder recorder(std::move(exporter), snapshot, progress, &store);
  recorder.keep_within({.population = options.population,
                        .store = store_file(options),
                        .current = snapshot.folder(),
                        .bytes = static_cast<std::uintmax_t>(options.disk_limit_gib * gib)});
  RememberingEvaluator remembering(*backend.evaluator, store);
  FitnessEvaluator& evaluator = options.fresh ? *backend.evaluator : remembering;
  Search search(options.search, seeds, {chosen, backend.info.target}, evaluator, recorder,
                interruption->token());
  search.run(incumbent, found_before);

  if (const std::string reason = interruption->reason(); !reason.empty()) {
    fmt::print("Stopped by {}.\n", reason);
  }
  fmt::print("{}", summary(search.archive(), search.lineage(), seeds, backend.info));
  const bool has_final = backend.timer != nullptr && search.archive().best() != nullptr;
  if (has_final && !interruption->by_signal()) {
    interruption.emplace(rest_of_budget(options, start));
    confirm_winner(search.archive(), backend, problem, snapshot, recorder, interruption->token());
  }
  fmt::print("Export: {}\n", out.string());
  return 0;
}

} // namespace evo
