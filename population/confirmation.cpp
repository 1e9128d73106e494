#include "population/confirmation.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "fitness/block_statistics.hpp"
#include "population/duel.hpp"
#include "population/timing_report.hpp"

namespace evo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_finalists = 5;
constexpr std::size_t enough_blocks = 12;
constexpr int blocks_per_request = 4;
constexpr std::chrono::seconds patience{5}; // for blocks beyond the first request's
constexpr double level = 0.05;

struct Entrant {
  Individual individual;
  Built built;
};

std::string failure(const std::string& who, Verdict verdict, const std::string& detail) {
  return fmt::format("{} failed in the final: {}: {}", who, to_string(verdict), detail);
}

std::string failure(const Individual& individual, const Fitness& fitness) {
  return failure(short_id(individual.genome.id), fitness.verdict, fitness.detail);
}

/// Who builds, from the cache, for all have been built before; and has passed its verification.
std::vector<Entrant> enter(const Archive& archive, FitnessEvaluator& evaluator,
                           std::stop_token stop, std::vector<std::string>& failures) {
  std::vector<Entrant> entrants;
  for (const Individual* individual : archive.fittest(most_finalists)) {
    auto result = evaluator.build(individual->genome, stop);
    auto* built = std::get_if<Built>(&result);
    if (built == nullptr) {
      continue;
    }
    Entrant entrant{*individual, std::move(*built)};
    Fitness& fitness = entrant.individual.fitness;
    if (!fitness.verification) {
      fitness = verified(std::move(fitness),
                         evaluator.verify(individual->genome, entrant.built, false, stop));
    }
    if (fitness.ok()) {
      entrants.push_back(std::move(entrant));
    } else {
      failures.push_back(failure(entrant.individual, fitness));
    }
  }
  return entrants;
}

/// Blocks of all entrants. Those that fail are taken out, with a sentence to `failures`, and the
/// others begin again. Empty when it is not known who failed, or nobody is left.
std::vector<TimedBlock> time_entrants(std::vector<Entrant>& entrants, WorkerClient& worker,
                                      const std::vector<int>& sizes, std::stop_token stop,
                                      std::vector<std::string>& failures) {
  std::vector<TimedBlock> blocks;
  const auto end = Clock::now() + patience;
  while (!entrants.empty() && (blocks.empty() || Clock::now() < end) &&
         blocks.size() < enough_blocks) {
    CompareRequest request;
    for (const Entrant& entrant : entrants) {
      request.contenders.push_back(contender(entrant.individual.genome.id, entrant.built));
    }
    request.sizes = sizes;
    request.blocks = blocks_per_request;
    CompareResponse response = worker.compare(request, stop);
    if (response.verdict == Verdict::Ok) {
      std::ranges::move(response.blocks, std::back_inserter(blocks));
      continue;
    }
    failures.push_back(
        failure(response.culprit.empty() ? "one of them" : short_id(response.culprit),
                response.verdict, response.detail));
    blocks.clear();
    if (std::erase_if(entrants, [&](const Entrant& entrant) {
          return entrant.individual.genome.id == response.culprit;
        }) == 0) {
      return blocks;
    }
  }
  return blocks;
}

Finalist finalist(const Individual& individual, const std::vector<TimedBlock>& blocks,
                  std::size_t place, std::size_t finalists) {
  const double each = level / static_cast<double>(std::max<std::size_t>(finalists - 1, 1));
  return {.individual = individual,
          .confirmed = with_reference(with_times(individual.fitness, blocks, place), blocks),
          .speedup = student_interval(log_ratios(blocks, finalists, place), level),
          .over_searched = student_interval(log_ratios(blocks, 0, place), each)};
}

std::size_t winner_of(const std::vector<Finalist>& finalists) {
  std::size_t winner = 0;
  for (std::size_t i = 1; i < finalists.size(); ++i) {
    const Estimate& estimate = finalists[i].over_searched;
    if (estimate.low > 1 &&
        (winner == 0 || estimate.ratio > finalists[winner].over_searched.ratio)) {
      winner = i;
    }
  }
  return winner;
}

/// Picks the winner, and another one for as long as it fails.
void verify_winner(Confirmation& confirmation, std::vector<Entrant> entrants,
                   FitnessEvaluator& evaluator, std::stop_token stop) {
  std::vector<Finalist>& finalists = confirmation.finalists;
  while (!finalists.empty()) {
    confirmation.winner = winner_of(finalists);
    const auto place = static_cast<std::ptrdiff_t>(confirmation.winner);
    Finalist& winner = finalists[confirmation.winner];
    const Entrant& entrant = entrants[confirmation.winner];
    VerifyResponse response =
        evaluator.verify(entrant.individual.genome, entrant.built, true, stop);
    if (stop.stop_requested()) { // its verification in part stands
      return;
    }
    winner.confirmed = verified(std::move(winner.confirmed), std::move(response));
    if (winner.confirmed.ok()) {
      return;
    }
    confirmation.failures.push_back(failure(winner.individual, winner.confirmed));
    finalists.erase(finalists.begin() + place);
    entrants.erase(entrants.begin() + place);
  }
}

double shrinkage_percent(const Finalist& finalist) {
  return 100 * (finalist.speedup.ratio / finalist.individual.fitness.speedup - 1);
}

} // namespace

std::optional<Confirmation> confirm(const Archive& archive, FitnessEvaluator& evaluator,
                                    WorkerClient& worker, const std::vector<int>& sizes,
                                    std::stop_token stop) {
  Confirmation confirmation;
  std::vector<Entrant> entrants = enter(archive, evaluator, stop, confirmation.failures);
  worker.renew();
  const std::vector<TimedBlock> blocks =
      time_entrants(entrants, worker, sizes, stop, confirmation.failures);
  if (blocks.empty() || stop.stop_requested()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    confirmation.finalists.push_back(finalist(entrants[i].individual, blocks, i, entrants.size()));
  }
  confirmation.blocks = blocks.size();
  verify_winner(confirmation, std::move(entrants), evaluator, stop);
  return confirmation.finalists.empty() ? std::nullopt : std::optional(std::move(confirmation));
}

std::string report(const Confirmation& confirmation) {
  const Finalist& first = confirmation.finalists.front();
  std::string text = fmt::format(
      "The search measured {:.3f}x, confirmed {:.3f}x ({:+.1f} %) in a fresh process, {} blocks:\n",
      first.individual.fitness.speedup, first.speedup.ratio, shrinkage_percent(first),
      confirmation.blocks);
  for (const Finalist& finalist : confirmation.finalists) {
    text += fmt::format("  {}: {}, the search measured {:.3f}x\n",
                        short_id(finalist.individual.genome.id), describe(finalist.speedup),
                        finalist.individual.fitness.speedup);
  }
  for (const std::string& failure : confirmation.failures) {
    text += "  " + failure + "\n";
  }
  if (confirmation.winner != 0) {
    const Finalist& winner = confirmation.finalists[confirmation.winner];
    text += fmt::format("The export is {} now: {} as fast as {}\n",
                        short_id(winner.individual.genome.id), describe(winner.over_searched),
                        short_id(first.individual.genome.id));
  }
  return text;
}

nlohmann::json to_record(const Confirmation& confirmation) {
  nlohmann::json finalists = nlohmann::json::array();
  for (const Finalist& finalist : confirmation.finalists) {
    finalists.push_back({{"id", finalist.individual.genome.id},
                         {"searched", finalist.individual.fitness.speedup},
                         {"confirmed", finalist.speedup.ratio},
                         {"low", finalist.speedup.low},
                         {"high", finalist.speedup.high},
                         {"shrinkage_percent", -shrinkage_percent(finalist)},
                         {"sizes", finalist.confirmed.sizes}});
  }
  return {{"event", "confirmed"},
          {"id", confirmation.finalists[confirmation.winner].individual.genome.id},
          {"blocks", confirmation.blocks},
          {"finalists", std::move(finalists)},
          {"failures", confirmation.failures}};
}

} // namespace evo
