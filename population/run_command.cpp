#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "population/backend.hpp"
#include "population/commands.hpp"
#include "population/confirmation.hpp"
#include "population/files.hpp"
#include "population/founders.hpp"
#include "population/interruption.hpp"
#include "population/recorded_evaluator.hpp"
#include "population/recorder.hpp"
#include "population/remembering_evaluator.hpp"
#include "population/run_record.hpp"
#include "population/summary.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;

using Seconds = std::chrono::duration<double>;

constexpr double gib = 1024.0 * 1024 * 1024;
constexpr Seconds most_for_confirmation{20}; // a fresh worker, and five kernels in it

/// What the search may take, so that its winner can still be confirmed.
std::optional<Seconds> search_budget(const Options& options, std::optional<Seconds> whole) {
  return whole && options.backend != BackendChoice::Model
             ? std::optional(*whole - std::min(*whole / 10, most_for_confirmation))
             : whole;
}

/// Exports the winner again, with the figures of the final. A final that cannot be held leaves the
/// export as it is.
void confirm_winner(const Archive& archive, const OpenBackend& backend, const Problem& problem,
                    const Snapshot& snapshot, Recorder& recorder, std::stop_token stop) {
  std::optional<Confirmation> confirmation;
  std::string why = "there was no time, or nobody was left";
  try {
    confirmation = confirm(archive, *backend.evaluator, *backend.timer, problem.sizes, stop);
  } catch (const NoWorker& no_worker) {
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

ProgressSettings progress_settings(const Options& options, std::optional<Seconds> budget) {
  ProgressSettings settings{.generations = options.search.generations,
                            .population = options.search.population,
                            .budget = {},
                            .terminal = isatty(STDOUT_FILENO) == 1};
  if (budget) {
    settings.budget = std::chrono::duration_cast<std::chrono::seconds>(*budget);
  }
  return settings;
}

/// Whoever gives the verdicts: a judge, or a file.
OpenBackend open(const Options& options, const Problem& problem, std::stop_token stop) {
  if (options.fitness_from.empty()) {
    return open_backend(options, problem, std::move(stop), many_candidates);
  }
  Recorded recorded = read_journal(options.fitness_from);
  if (recorded.settings.empty()) {
    throw InputError(fmt::format("{} holds no verdicts; name the journal.jsonl of a run",
                                 options.fitness_from.string()));
  }
  OpenBackend backend;
  backend.info = recorded.settings.back().backend;
  backend.info.recorded_in = options.fitness_from.string();
  backend.evaluator = std::make_unique<RecordedEvaluator>(std::move(recorded));
  return backend;
}

void say_what_was_found(const BackendInfo& info, const Snapshot& snapshot) {
  if (!info.note.empty()) {
    fmt::print("No card is used: {}\n", info.note);
  }
  for (const std::string& remark : info.remarks) {
    fmt::print("Note: {}\n", remark);
  }
  fmt::print("Backend: {}\nRun: {}\n", describe(info), snapshot.folder().string());
  if (!info.conditions_missing.empty()) {
    fmt::print("Of the card, {}\n", info.conditions_missing);
  }
}

/// What the run did before it was interrupted.
struct Interrupted {
  std::vector<Past> past;
  Recorded journal;
  double elapsed_s = 0;
};

/// This run's own verdicts. Those of other conditions hold where they are failures; what was right
/// there is timed again.
std::map<std::string, Individual> given_before(const Recorded& journal, const Context& context) {
  std::map<std::string, Individual> result;
  for (const auto& [id, entry] : journal.verdicts) {
    if (!entry.individual.fitness.ok() || journal.settings[entry.setting].context == context) {
      result.emplace(id, entry.individual);
    }
  }
  return result;
}

/// Whether the run goes on under other conditions; says so.
bool is_elsewhere(const Recorded& journal, const Context& context) {
  const std::string what =
      journal.settings.empty() ? "" : differences(context, journal.settings.back().context);
  if (!what.empty()) {
    fmt::print("Note: the run was interrupted under other conditions ({}): verdicts stand, and "
               "what may breed is timed again\n",
               what);
  }
  return !what.empty();
}

void say_what_is_damaged(const Interrupted& before) {
  if (before.journal.damaged_lines > 0) {
    fmt::print("Note: {} of journal.jsonl cannot be read, as after a kill in the middle of one: "
               "what was said there is found out again\n",
               before.journal.damaged_lines == 1
                   ? "a line"
                   : fmt::format("{} lines", before.journal.damaged_lines));
  }
}

/// The run in a folder, from its beginning or from where it was interrupted.
int run_in(const Snapshot& snapshot, RunRecord record, Interrupted before) {
  const Options& options = record.options;
  const std::vector<Genome> seeds = load_seeds(record.problem, target_of(options));
  std::optional<Seconds> budget;
  if (options.time_budget_s) {
    budget = Seconds(*options.time_budget_s - before.elapsed_s);
  }
  const auto start = std::chrono::steady_clock::now();
  std::optional<Interruption> interruption(std::in_place, search_budget(options, budget));
  const OpenBackend backend = open(options, record.problem, interruption->token());
  const Context context = context_of(record.problem, backend.info, options.level,
                                     options.search.seed, options.sanitizer);
  say_what_was_found(backend.info, snapshot);
  say_what_is_damaged(before);

  std::optional<Store> store;
  std::optional<RememberingEvaluator> remembering;
  if (!backend.info.recorded()) {
    store.emplace(store_file(options), context);
    if (!options.fresh && !record.begun) {
      record.founders = founders(*store);
    }
    fmt::print("Store: {}, {} verdicts{}\n", store_file(options).string(), store->size(),
               options.fresh
                   ? ", not used"
                   : fmt::format(" known, {} founders from earlier runs", record.founders.size()));
    remembering.emplace(*backend.evaluator,
                        JudgedBefore{.store = *store,
                                     .fresh = options.fresh,
                                     .given = given_before(before.journal, context)});
  }
  record.begun = true;
  snapshot.describe(to_json(record, backend.info));

  Exporter exporter(record.problem, backend.info, options.search.seed, options.out);
  Beginning beginning{.incumbent = {},
                      .founders = record.founders,
                      .past = std::move(before.past),
                      .elsewhere = is_elsewhere(before.journal, context)};
  if (!options.incumbent.empty()) {
    beginning.incumbent = load_genome(options.incumbent, target_of(options));
    exporter.keep(beginning.incumbent->id, read_text(options.incumbent));
  }
  Progress progress(progress_settings(options, budget), stdout);
  Recorder recorder(std::move(exporter), snapshot, progress,
                    Journal(snapshot.folder() / journal_file, {context, backend.info}),
                    store ? &*store : nullptr);
  recorder.keep_within({.population = options.population,
                        .store = store_file(options),
                        .current = snapshot.folder(),
                        .bytes = static_cast<std::uintmax_t>(options.disk_limit_gib * gib)});
  FitnessEvaluator& evaluator = remembering ? *remembering : *backend.evaluator;
  Search search(options.search, seeds, {mutators_of(options), backend.info.target}, evaluator,
                recorder, interruption->token());
  search.run(beginning);

  if (const std::string reason = interruption->reason(); !reason.empty()) {
    fmt::print("Stopped by {}.\n", reason);
  }
  fmt::print("{}", summary(search.archive(), search.lineage(), seeds, backend.info));
  const bool has_final = backend.timer != nullptr && search.archive().best() != nullptr;
  if (has_final && !interruption->by_signal()) {
    const Seconds taken = std::chrono::steady_clock::now() - start;
    interruption.emplace(budget ? std::optional(std::max(Seconds(0), *budget - taken))
                                : std::nullopt);
    confirm_winner(search.archive(), backend, record.problem, snapshot, recorder,
                   interruption->token());
  }
  fmt::print("Export: {}\n", options.out.string());
  return 0;
}

/// The population folder that a run lies in, or the one given where it was moved out of it.
fs::path population_of(const fs::path& run_folder, const Options& options) {
  const fs::path runs = fs::canonical(run_folder).parent_path();
  return runs.filename() == "runs" ? runs.parent_path() : options.population;
}

} // namespace

int run_command(const Options& options) {
  RunRecord record{
      .options = options, .problem = load_problem(options), .founders = {}, .begun = false};
  load_seeds(record.problem, target_of(options)); // what is wrong is said before a folder is made
  mutators_of(options);
  if (options.out.empty()) {
    record.options.out = record.problem.output_file;
  }
  if (!options.incumbent.empty()) {
    load_genome(options.incumbent, target_of(options));
  }
  check_writable(record.options.out);
  const Snapshot snapshot(options.population, options.search.seed);
  keep_inputs(snapshot, record);
  return run_in(snapshot, std::move(record), {});
}

int resume_command(const Options& options, const std::string& run, const Overrides& overrides) {
  const fs::path folder = find_run(options.population, run);
  const Snapshot snapshot(folder); // nobody else changes it from here on
  RunRecord record = load_record(folder);
  Options& asked = record.options;
  asked.population = population_of(folder, options);
  asked.search.generations = overrides.generations.value_or(asked.search.generations);
  asked.search.jobs = overrides.jobs.value_or(asked.search.jobs);
  asked.out = overrides.out.empty() ? asked.out : overrides.out;
  check_writable(asked.out);

  Interrupted before;
  before.past = load_past(folder);
  before.elapsed_s = elapsed_seconds(folder);
  if (fs::exists(folder / journal_file)) {
    before.journal = read_journal(folder / journal_file);
  }
  if (std::cmp_greater(before.past.size(), asked.search.generations)) {
    throw InputError(fmt::format("the run {} is complete, with {} generations; ask for more of "
                                 "them with --generations",
                                 folder.string(), asked.search.generations));
  }
  if (overrides.time_budget_s) {
    asked.time_budget_s = before.elapsed_s + *overrides.time_budget_s;
  }
  if (asked.time_budget_s && *asked.time_budget_s <= before.elapsed_s) {
    throw InputError(fmt::format("the run {} has spent its time; give it more with --time-budget",
                                 folder.string()));
  }
  snapshot.begin_log_again();
  return run_in(snapshot, std::move(record), std::move(before));
}

} // namespace evo
