#include "population/snapshot.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <sstream>
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

constexpr const char* judged_again_file = "judged_again.json";

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

/// What candidates said may be no UTF-8.
std::string to_text(const json& document) {
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
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

using Sources = std::map<std::string, std::string>; // by id

/// nullopt where the generation is not complete, or something of it is missing or damaged.
std::optional<Past> load_generation(const fs::path& folder, Sources& sources) {
  try {
    const json summary = json::parse(read_text(folder / "summary.json"));
    if (!summary.at("complete").get<bool>()) {
      return std::nullopt;
    }
    Past past{.children = summary.at("individuals").get<std::vector<Individual>>(),
              .judged_again = {}};
    for (Individual& child : past.children) {
      Genome& genome = child.genome;
      genome.source = read_text(folder / source_file(genome.id));
      if (!genome.id.empty() && digest(genome.source) != genome.id) {
        return std::nullopt;
      }
      sources.emplace(genome.id, genome.source);
    }
    if (fs::exists(folder / judged_again_file)) {
      json::parse(read_text(folder / judged_again_file)).get_to(past.judged_again);
    }
    for (Individual& again : past.judged_again) {
      again.genome.source = sources.at(again.genome.id);
    }
    return past;
  } catch (const std::exception&) { // whichever: it is bred again
    return std::nullopt;
  }
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
  lock_.emplace(folder_);
  replace_link(runs / "latest", folder_.filename());
}

Snapshot::Snapshot(fs::path run_folder) : folder_(std::move(run_folder)) {
  lock_.emplace(folder_);
  drop_cut_line(folder_ / "timing.jsonl");
}

void Snapshot::describe(const json& run) const {
  replace_text(folder_ / "run.json", run.dump(2) + "\n");
}

void Snapshot::keep_input(const fs::path& name, std::string_view text) const {
  const fs::path file = folder_ / "inputs" / name;
  std::error_code error;
  fs::create_directories(file.parent_path(), error); // write_text reports what failed
  write_text(file, text);
}

fs::path Snapshot::generation_folder(int number) const {
  return folder_ / fmt::format("gen-{:04}", number);
}

/// A generation counts as complete once its summary is there, which comes after all else.
void Snapshot::add(const Generation& generation, double wall_s, double gpu_busy_share) const {
  const fs::path folder = generation_folder(generation.number);
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
  replace_text(folder / "summary.json", to_text(summary));
  log(generation);
  append_text(folder_ / "timing.jsonl", json_lines(timings(generation, wall_s, gpu_busy_share)));
}

void Snapshot::begin_log_again() const {
  write_text(folder_ / "log.jsonl", "");
}

void Snapshot::log(const Generation& generation) const {
  append_text(folder_ / "log.jsonl", json_lines(events(generation)));
}

void Snapshot::add_judged_again(int number, const std::vector<Individual>& individuals) const {
  replace_text(generation_folder(number) / judged_again_file, to_text(json(individuals)));
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

std::vector<Past> load_past(const fs::path& run_folder) {
  std::vector<Past> result;
  Sources sources;
  for (int number = 0;; ++number) {
    auto past = load_generation(run_folder / fmt::format("gen-{:04}", number), sources);
    if (!past) {
      return result;
    }
    result.push_back(std::move(*past));
  }
}

double elapsed_seconds(const fs::path& run_folder) {
  double seconds = 0;
  if (fs::exists(run_folder / "timing.jsonl")) {
    std::istringstream lines(read_text(run_folder / "timing.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const json timing = json::parse(line, nullptr, false);
      seconds += timing.is_object() ? timing.value("wall_s", 0.0) : 0.0;
    }
  }
  return seconds;
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
