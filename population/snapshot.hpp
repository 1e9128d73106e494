// population/runs/<id>/: what a run leaves behind for a reader.
//
//   run.json                 options, versions, card
//   inputs/                  the seeds and the incumbent, as the run began with them
//   lock                     run_lock.hpp
//   journal.jsonl            journal.hpp: every verdict the moment it was given
//   log.jsonl, timing.jsonl  run_log.hpp
//   confirmation.json        confirmation.hpp, of a run on a card that came to its end
//   gen-0007/                one folder per generation; gen-0000 holds the seeds
//     summary.json           verdict counts, survivors, and every individual
//     1f3a9c02.cu            each individual's source, named by the beginning of its id
//     judged_again.json      where the run was resumed after it: what was judged again then
//
// and population/runs/latest, a link to the newest run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "population/run_lock.hpp"
#include "population/search.hpp"

namespace evo {

class Snapshot {
public:
  /// Creates the folder of a new run, named by date, time and seed, and points `latest` to it.
  /// InputError when the population folder cannot be written.
  Snapshot(const std::filesystem::path& population, std::uint64_t seed);

  /// The folder of a run that goes on. InputError when another process is at it, or it cannot be
  /// written.
  explicit Snapshot(std::filesystem::path run_folder);

  const std::filesystem::path& folder() const { return folder_; }

  void describe(const nlohmann::json& run) const;
  /// A file of inputs/, which a resumed run reads again.
  void keep_input(const std::filesystem::path& name, std::string_view text) const;

  /// Writes the generation's folder, then adds to the logs.
  void add(const Generation& generation, double wall_s, double gpu_busy_share) const;

  /// The log of a run that goes on is written once more from the past.
  void begin_log_again() const;
  void log(const Generation& generation) const;
  void add_judged_again(int number, const std::vector<Individual>& individuals) const;

  /// Writes confirmation.json, and adds it to the log.
  void confirm(const nlohmann::json& confirmation) const;

private:
  std::filesystem::path generation_folder(int number) const;

  std::filesystem::path folder_;
  std::optional<RunLock> lock_;
};

/// The folder of a run: its id, `latest`, or a path. InputError when there is none.
std::filesystem::path find_run(const std::filesystem::path& population, const std::string& run);

/// The generations of a run that are complete and whole, with sources, from 0 on.
std::vector<Past> load_past(const std::filesystem::path& run_folder);

/// Seconds that the generations of a run took.
double elapsed_seconds(const std::filesystem::path& run_folder);

/// The individual of a run whose id begins with `id`, with its source. InputError when none does,
/// or several do.
Individual load_individual(const std::filesystem::path& run_folder, std::string_view id);

} // namespace evo
