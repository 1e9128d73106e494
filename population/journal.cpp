#include "population/journal.hpp"

#include <sstream>
#include <utility>

#include "population/files.hpp"
#include "population/run_log.hpp"

namespace evo {
namespace {

using nlohmann::json;

json to_line_of(const Setting& setting) {
  const BackendInfo& backend = setting.backend;
  return {{"context", setting.context},
          {"backend",
           {{"measured", backend.measured()},
            {"card", backend.card},
            {"target", backend.target.arch},
            {"toolkit", backend.toolkit},
            {"driver", backend.driver},
            {"build_line", backend.build_line},
            {"reads_code", backend.reads_code},
            {"reference_precision", backend.reference_precision}}}};
}

Setting setting_from(const json& line) {
  const json& said = line.at("backend");
  BackendInfo backend;
  backend.kind = said.at("measured").get<bool>() ? Backend::Cuda : Backend::Model;
  said.at("card").get_to(backend.card);
  backend.target = Target::find(said.at("target").get<std::string>()).value_or(Target{});
  said.at("toolkit").get_to(backend.toolkit);
  said.at("driver").get_to(backend.driver);
  said.at("build_line").get_to(backend.build_line);
  said.at("reads_code").get_to(backend.reads_code);
  said.at("reference_precision").get_to(backend.reference_precision);
  return {line.at("context").get<Context>(), std::move(backend)};
}

void read_line(const std::string& text, Recorded& recorded) {
  const json line = json::parse(text);
  if (line.contains("context")) {
    recorded.settings.push_back(setting_from(line));
    return;
  }
  auto individual = line.get<Individual>();
  const std::string id = individual.genome.id;
  if (recorded.settings.empty()) {
    recorded.settings.emplace_back(); // its line is damaged
  }
  recorded.verdicts.insert_or_assign(
      id, Recorded::Entry{std::move(individual), recorded.settings.size() - 1});
}

} // namespace

Recorded read_journal(const std::filesystem::path& file) {
  Recorded recorded;
  std::istringstream lines(read_text(file));
  for (std::string line; std::getline(lines, line);) {
    try {
      read_line(line, recorded);
    } catch (const std::exception&) { // written in part, or no JSON of ours
      ++recorded.damaged_lines;
    }
  }
  return recorded;
}

Journal::Journal(std::filesystem::path file, Setting setting)
    : file_(std::move(file)), setting_(std::move(setting)) {
  drop_cut_line(file_);
}

void Journal::add(const Individual& individual) {
  if (!individual.has_own_verdict()) {
    return;
  }
  std::string lines;
  if (!std::exchange(setting_said_, true)) {
    lines = to_line(to_line_of(setting_)) + "\n";
  }
  append_text(file_, lines + to_line(json(individual)) + "\n");
}

} // namespace evo
