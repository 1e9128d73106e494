#include "population/run_record.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "fitness/protocol.hpp"
#include "population/files.hpp"
#include "population/version.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* incumbent_folder = "incumbent"; // of inputs: the file keeps its name

template <typename Value> json or_null(const std::optional<Value>& value) {
  return value ? json(*value) : json();
}

template <typename Value> void read_optional(const json& value, std::optional<Value>& result) {
  result = value.is_null() ? std::nullopt : std::optional(value.get<Value>());
}

/// As the command line spells them.
const char* name_of(BackendChoice backend) {
  switch (backend) {
  case BackendChoice::Cuda:
    return "cuda";
  case BackendChoice::Model:
    return "model";
  case BackendChoice::Auto:
    break;
  }
  return "auto";
}

BackendChoice backend_named(const std::string& name) {
  return name == "cuda"    ? BackendChoice::Cuda
         : name == "model" ? BackendChoice::Model
                           : BackendChoice::Auto;
}

/// Empty for none.
std::string absolute_path(const fs::path& file) {
  return file.empty() ? "" : fs::absolute(file).lexically_normal().string();
}

json record_of(const std::vector<Founder>& founders) {
  json result = json::array();
  for (const Founder& founder : founders) {
    result.push_back({{"seed", founder.seed}, {"trail", to_strings(founder.trail)}});
  }
  return result;
}

std::vector<Founder> founders_from(const json& founders) {
  std::vector<Founder> result;
  for (const json& said : founders) {
    Founder founder{.seed = said.at("seed"), .trail = {}};
    for (const json& line : said.at("trail")) {
      founder.trail.push_back(gene_from(line.get<std::string>()).value());
    }
    result.push_back(std::move(founder));
  }
  return result;
}

std::vector<std::string> names_of(const std::vector<fs::path>& files) {
  std::vector<std::string> names;
  std::ranges::transform(files, std::back_inserter(names),
                         [](const fs::path& file) { return file.filename().string(); });
  return names;
}

/// What only a resumed run reads.
json rest_of(const RunRecord& record) {
  const Options& options = record.options;
  return {{"backend", name_of(options.backend)},
          {"device", or_null(options.device)},
          {"target", options.target},
          {"sanitizer", options.sanitizer},
          {"store", absolute_path(options.store)},
          {"fresh", options.fresh},
          {"disk_limit_gib", options.disk_limit_gib},
          {"fitness_from", absolute_path(options.fitness_from)},
          {"incumbent", options.incumbent.filename().string()},
          {"seeds", names_of(record.problem.seeds)},
          {"problem", record.problem},
          {"founders", record_of(record.founders)},
          {"begun", record.begun}};
}

RunRecord record_from(const json& run, const fs::path& run_folder) {
  const json& rest = run.at("resume");
  const fs::path inputs = run_folder / "inputs";
  RunRecord record;
  Options& options = record.options;
  run.at("generations").get_to(options.search.generations);
  run.at("pop").get_to(options.search.population);
  run.at("seed").get_to(options.search.seed);
  run.at("jobs").get_to(options.search.jobs);
  run.at("without").get_to(options.without);
  read_optional(run.at("time_budget_s"), options.time_budget_s);
  options.out = run.at("out").get<std::string>();
  options.level = level_from(run.at("level").get<std::string>()).value();
  options.backend = backend_named(rest.at("backend"));
  read_optional(rest.at("device"), options.device);
  rest.at("target").get_to(options.target);
  rest.at("sanitizer").get_to(options.sanitizer);
  options.store = rest.at("store").get<std::string>();
  rest.at("fresh").get_to(options.fresh);
  rest.at("disk_limit_gib").get_to(options.disk_limit_gib);
  options.fitness_from = rest.at("fitness_from").get<std::string>();
  if (const std::string name = rest.at("incumbent"); !name.empty()) {
    options.incumbent = inputs / incumbent_folder / name;
  }
  rest.at("problem").get_to(record.problem);
  record.problem.seeds.clear();
  for (const json& name : rest.at("seeds")) {
    record.problem.seeds.push_back(inputs / name.get<std::string>());
  }
  record.founders = founders_from(rest.at("founders"));
  rest.at("begun").get_to(record.begun);
  return record;
}

} // namespace

json to_json(const RunRecord& record, const BackendInfo& backend) {
  const Options& options = record.options;
  json seeds = json::array();
  for (const fs::path& seed : record.problem.seeds) {
    seeds.push_back(absolute_path(seed));
  }
  return {{"evo", version},
          {"generations", options.search.generations},
          {"pop", options.search.population},
          {"seed", options.search.seed},
          {"jobs", options.search.jobs},
          {"without", options.without},
          {"time_budget_s", or_null(options.time_budget_s)},
          {"problem", absolute_path(record.problem.folder)},
          {"seeds", seeds},
          {"sizes", record.problem.sizes},
          {"out", absolute_path(options.out)},
          {"backend", backend.measured() ? "cuda" : "model"},
          {"measured", backend.measured()},
          {"card", backend.card},
          {"target", backend.target.arch},
          {"toolkit", backend.toolkit},
          {"driver", backend.driver},
          {"reference_precision", backend.reference_precision},
          {"level", to_string(options.level)},
          {"resume", rest_of(record)}};
}

RunRecord load_record(const fs::path& run_folder) {
  const fs::path file = run_folder / "run.json";
  try {
    return record_from(json::parse(read_text(file)), run_folder);
  } catch (const json::exception& error) {
    throw InputError(fmt::format("{} does not say how to go on ({}); begin a new run",
                                 file.string(), error.what()));
  } catch (const std::bad_optional_access&) {
    throw InputError(fmt::format("{} does not say how to go on; begin a new run", file.string()));
  }
}

void keep_inputs(const Snapshot& snapshot, const RunRecord& record) {
  for (const fs::path& seed : record.problem.seeds) {
    snapshot.keep_input(seed.filename(), read_text(seed));
  }
  const fs::path& incumbent = record.options.incumbent;
  if (!incumbent.empty()) {
    snapshot.keep_input(fs::path(incumbent_folder) / incumbent.filename(), read_text(incumbent));
  }
}

} // namespace evo
