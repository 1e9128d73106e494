// population/runs/<id>/: what a run leaves behind for a reader.
//
//   run.json                 options, versions, card
//   log.jsonl, timing.jsonl  run_log.hpp
//   confirmation.json        confirmation.hpp, of a run on a card that came to its end
//   gen-0007/                one folder per generation; gen-0000 holds the seeds
//     summary.json           verdict counts, survivors, and every individual
//     1f3a9c02.cu            each individual's source, named by the beginning of its id
//
// and population/runs/latest, a link to the newest run.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "population/search.hpp"

namespace evo {

class Snapshot {
public:
  /// Creates the folder of a new run, named by date, time and seed, and points `latest` to it.
  /// InputError when the population folder cannot be written.
  Snapshot(const std::filesystem::path& population, std::uint64_t seed);

  const std::filesystem::path& folder() const { return folder_; }

  void describe(const nlohmann::json& run) const;

  /// Writes the generation's folder, then adds to the logs.
  void add(const Generation& generation, double wall_s, double gpu_busy_share) const;

  /// Writes confirmation.json, and adds it to the log.
  void confirm(const nlohmann::json& confirmation) const;

private:
  std::filesystem::path folder_;
};

/// The folder of a run: its id, `latest`, or a path. InputError when there is none.
std::filesystem::path find_run(const std::filesystem::path& population, const std::string& run);

/// The individual of a run whose id begins with `id`, with its source. InputError when none does,
/// or several do.
Individual load_individual(const std::filesystem::path& run_folder, std::string_view id);

} // namespace evo
