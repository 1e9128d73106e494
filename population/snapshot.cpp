#include "population/snapshot.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "fitness/problem.hpp"
#include "population/files.hpp"
#include "population/run_log.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path source_file(const std::string& id) {
  return short_id(id) + ".cu";
}

/// "20240131-142501-seed7", with "-2" and so on where that exists.
fs::path create_run_folder(const fs::path& runs, std::uint64_t seed) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::string name = fmt::format("{:%Y%m%d-%H%M%S}-seed{}", fmt::localtime(now), seed);
  fs::create_directories(runs);
  for (int i = 1;; ++i) {
    const fs::path folder = runs / (i == 1 ? name : fmt::format("{}-{}", name, i));
    if (fs::create_directory(folder)) {
      return folder;
    }
  }
}

json survivor_ids(const Generation& generation) {
  json islands = json::array();
  for (const auto& island : generation.survivors) {
    json ids = json::array();
    for (const Individual& survivor : island) {
      ids.push_back(survivor.genome.id);
    }
    islands.push_back(std::move(ids));
  }
  return islands;
}

std::vector<fs::path> generation_folders(const fs::path& run_folder) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(run_folder)) {
    if (fs::exists(entry.path() / "summary.json")) {
      folders.push_back(entry.path());
    }
  }
  std::ranges::sort(folders);
  return folders;
}

} // namespace

Snapshot::Snapshot(const fs::path& population, std::uint64_t seed) {
  const fs::path runs = population / "runs";
  try {
    folder_ = create_run_folder(runs, seed);
  } catch (const fs::filesystem_error& error) {
    throw InputError(fmt::format("cannot write to {}: {}; choose another --population-dir",
                                 runs.string(), error.code().message()));
  }
  replace_link(runs / "latest", folder_.filename());
}

void Snapshot::describe(const json& run) const {
  write_text(folder_ / "run.json", run.dump(2) + "\n");
}

void Snapshot::add(const Generation& generation, double wall_s, double gpu_busy_share) const {
  const fs::path folder = folder_ / fmt::format("gen-{:04}", generation.number);
  std::error_code error;
  fs::create_directory(folder, error); // write_text reports what failed
  for (const Individual& individual : generation.children) {
    write_text(folder / source_file(individual.genome.id), individual.genome.source);
  }
  const json summary{{"generation", generation.number},
                     {"complete", generation.complete},
                     {"verdicts", verdict_counts(generation.children)},
                     {"survivors", survivor_ids(generation)},
                     {"individuals", generation.children}};
  write_text(folder / "summary.json", summary.dump(2) + "\n");
  append_text(folder_ / "log.jsonl", json_lines(events(generation)));
  append_text(folder_ / "timing.jsonl", json_lines(timings(generation, wall_s, gpu_busy_share)));
}

void Snapshot::confirm(const json& confirmation) const {
  write_text(folder_ / "confirmation.json", confirmation.dump(2) + "\n");
  append_text(folder_ / "log.jsonl", json_lines({confirmation}));
}

fs::path find_run(const fs::path& population, const std::string& run) {
  for (const fs::path& folder : {population / "runs" / run, fs::path(run)}) {
    if (fs::exists(folder / "run.json")) {
      return folder;
    }
  }
  throw InputError(fmt::format("there is no run {} in {}; name a folder of it, or latest", run,
                               (population / "runs").string()));
}

Individual load_individual(const fs::path& run_folder, std::string_view id) {
  std::optional<Individual> found;
  for (const fs::path& folder : generation_folders(run_folder)) {
    const json summary = json::parse(read_text(folder / "summary.json"));
    for (const json& entry : summary.at("individuals")) {
      auto individual = entry.get<Individual>();
      if (!individual.genome.id.starts_with(id) || !individual.duplicate_of.empty()) {
        continue;
      }
      if (found && found->genome.id != individual.genome.id) {
        throw InputError(fmt::format("several individuals of {} have ids that begin with {}; give "
                                     "more digits",
                                     run_folder.string(), id));
      }
      if (found) {
        continue;
      }
      individual.genome.source = read_text(folder / source_file(individual.genome.id));
      found = std::move(individual);
    }
  }
  if (!found) {
    throw InputError(
        fmt::format("no individual of {} has an id that begins with {}", run_folder.string(), id));
  }
  return *found;
}

} // namespace evo
