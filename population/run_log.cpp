#include "population/run_log.hpp"

#include <map>
#include <utility>

#include "fitness/protocol.hpp"

namespace evo {
namespace {

using nlohmann::json;

/// Appends the events of one individual.
void add_events(std::vector<json>& events, const Individual& individual) {
  const auto add = [&](const char* name, json details) {
    json event{{"event", name},
               {"generation", individual.generation},
               {"slot", individual.slot},
               {"id", individual.genome.id}};
    event.update(details);
    events.push_back(std::move(event));
  };
  const Fitness& fitness = individual.fitness;
  add("proposed", {{"parents", individual.parents},
                   {"seed", individual.genome.seed},
                   {"trail", to_strings(individual.genome.trail)}});
  for (const Gene& gene : individual.dropped) {
    add("dropped gene", {{"gene", to_string(gene)}});
  }
  if (individual.known) {
    add("known", json::object());
  }
  if (individual.built) {
    add("built", {{"kernels", individual.kernels}});
  }
  if (!individual.duplicate_of.empty()) {
    add("duplicate", {{"of", individual.duplicate_of}});
  } else if (fitness.ok()) {
    add("judged",
        {{"speedup", fitness.speedup}, {"measured", fitness.measured}, {"sizes", fitness.sizes}});
    if (fitness.verification) {
      add("verified", {{"level", to_string(fitness.verification->level)},
                       {"headroom", fitness.verification->headroom},
                       {"sizes", fitness.verification->sizes()},
                       {"calls", fitness.verification->calls}});
    }
  } else {
    add("failed", {{"verdict", to_string(fitness.verdict)}, {"detail", fitness.detail}});
  }
  if (individual.elite) {
    add("elite", {{"speedup", fitness.speedup}});
    add("exported", json::object());
  }
}

json failure_counts(const std::vector<Individual>& individuals) {
  Failures failures;
  for (const Individual& individual : individuals) {
    count(failures, individual);
  }
  json counts = json::object();
  for (const auto& [stage, kinds] : failures) {
    for (const auto& [verdict, number] : kinds) {
      counts[std::string(to_string(stage))][std::string(to_string(verdict))] = number;
    }
  }
  return counts;
}

} // namespace

std::vector<json> events(const Generation& generation) {
  std::vector<json> events;
  for (const Individual& individual : generation.children) {
    add_events(events, individual);
  }
  for (std::size_t island = 0; island < generation.survivors.size(); ++island) {
    for (const Individual& survivor : generation.survivors[island]) {
      events.push_back({{"event", "survivor"},
                        {"generation", generation.number},
                        {"island", island},
                        {"id", survivor.genome.id},
                        {"speedup", survivor.fitness.speedup}});
    }
  }
  events.push_back({{"event", "generation"},
                    {"generation", generation.number},
                    {"complete", generation.complete},
                    {"verdicts", verdict_counts(generation.children)},
                    {"failures", failure_counts(generation.children)}});
  return events;
}

std::vector<json> timings(const Generation& generation, double wall_s, double gpu_busy_share) {
  std::vector<json> timings;
  for (const Individual& individual : generation.children) {
    const Timing& timing = individual.timing;
    timings.push_back({{"generation", generation.number},
                       {"slot", individual.slot},
                       {"id", individual.genome.id},
                       {"propose_s", timing.propose_s},
                       {"build_s", timing.build_s},
                       {"wait_s", timing.wait_s},
                       {"judge_s", timing.judge_s}});
  }
  timings.push_back(
      {{"generation", generation.number}, {"wall_s", wall_s}, {"gpu_busy_share", gpu_busy_share}});
  return timings;
}

std::string to_line(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string json_lines(const std::vector<json>& objects) {
  std::string text;
  for (const json& object : objects) {
    text += to_line(object) + "\n";
  }
  return text;
}

json verdict_counts(const std::vector<Individual>& individuals) {
  std::map<std::string, int> counts;
  for (const Individual& individual : individuals) {
    ++counts[std::string(to_string(individual.verdict()))];
  }
  return counts;
}

} // namespace evo
