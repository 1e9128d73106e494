#include "population/individual.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "fitness/named.hpp"
#include "fitness/protocol.hpp"

namespace evo {
namespace {

std::vector<Gene> genes(const nlohmann::json& json) {
  std::vector<Gene> result;
  for (const auto& line : json) {
    const auto gene = gene_from(line.get<std::string>());
    if (!gene) {
      throw std::runtime_error("\"" + line.get<std::string>() + "\" is not a gene");
    }
    result.push_back(*gene);
  }
  return result;
}

} // namespace

std::string_view to_string(Stage stage) {
  switch (stage) {
  case Stage::Propose:
    return "propose";
  case Stage::Build:
    return "build";
  case Stage::Judge:
    return "judge";
  }
  return "unknown";
}

void count(Failures& failures, const Individual& individual) {
  if (individual.failed()) {
    ++failures[individual.stage][individual.fitness.verdict];
  }
}

int total(const Failures& failures) {
  int sum = 0;
  for (const auto& [stage, kinds] : failures) {
    for (const auto& [verdict, count] : kinds) {
      sum += count;
    }
  }
  return sum;
}

std::string to_string(const Failures& failures) {
  std::string text;
  for (const auto& [stage, kinds] : failures) {
    text += fmt::format("{}{}: ", text.empty() ? "" : "; ", to_string(stage));
    const char* separator = "";
    for (const auto& [verdict, count] : kinds) {
      text += fmt::format("{}{} {}", std::exchange(separator, ", "), to_string(verdict), count);
    }
  }
  return text;
}

Products products_of(const std::map<std::string, KernelResources>& kernels) {
  Products all;
  for (const auto& [name, kernel] : kernels) {
    for (const auto& [precision, count] : kernel.products) {
      all[precision] += count;
    }
  }
  return all;
}

bool fitter(const Individual& a, const Individual& b) {
  if (a.viable() != b.viable()) {
    return a.viable();
  }
  if (a.pace() != b.pace()) {
    return a.pace() > b.pace();
  }
  return a.genome.id < b.genome.id;
}

void to_json(nlohmann::json& json, const KernelResources& resources) {
  json = {{"registers", resources.registers},
          {"shared_bytes", resources.shared_bytes},
          {"spill_bytes", resources.spill_bytes},
          {"products", to_record(resources.products)}};
}

void from_json(const nlohmann::json& json, KernelResources& resources) {
  json.at("registers").get_to(resources.registers);
  json.at("shared_bytes").get_to(resources.shared_bytes);
  json.at("spill_bytes").get_to(resources.spill_bytes);
  if (json.contains("products")) { // runs of earlier versions have none
    resources.products = products_from(json.at("products"));
  }
}

void to_json(nlohmann::json& json, const Individual& individual) {
  json = {{"id", individual.genome.id},
          {"seed", individual.genome.seed},
          {"trail", to_strings(individual.genome.trail)},
          {"keeps_order", individual.genome.keeps_order},
          {"generation", individual.generation},
          {"slot", individual.slot},
          {"parents", individual.parents},
          {"mutator", individual.mutator},
          {"dropped", to_strings(individual.dropped)},
          {"stage", to_string(individual.stage)},
          {"built", individual.built},
          {"binary", individual.binary},
          {"kernels", individual.kernels},
          {"duplicate_of", individual.duplicate_of},
          {"verdict", to_string(individual.verdict())},
          {"fitness", individual.fitness},
          {"elite", individual.elite},
          {"known", individual.known}};
}

void from_json(const nlohmann::json& json, Individual& individual) {
  json.at("id").get_to(individual.genome.id);
  json.at("seed").get_to(individual.genome.seed);
  individual.genome.trail = genes(json.at("trail"));
  json.at("keeps_order").get_to(individual.genome.keeps_order);
  json.at("generation").get_to(individual.generation);
  json.at("slot").get_to(individual.slot);
  json.at("parents").get_to(individual.parents);
  json.at("mutator").get_to(individual.mutator);
  individual.dropped = genes(json.at("dropped"));
  individual.stage = find_named(all_stages, json.value("stage", "judge")).value_or(Stage::Judge);
  json.at("built").get_to(individual.built);
  individual.binary = json.value("binary", ""); // runs of earlier versions have none
  json.at("kernels").get_to(individual.kernels);
  json.at("duplicate_of").get_to(individual.duplicate_of);
  json.at("fitness").get_to(individual.fitness);
  json.at("elite").get_to(individual.elite);
  individual.known = json.value("known", false);
}

} // namespace evo
