#include "population/search.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <ranges>
#include <utility>

#include <fmt/core.h>

#include "fitness/problem.hpp"
#include "population/selection.hpp"

namespace evo {
namespace {

constexpr int migration_interval = 3; // generations

/// The genome that a trail makes of its seed today.
Proposal descend(const Genome& seed, const std::vector<Gene>& trail, const Dialect& dialect) {
  Followed followed = follow(seed, trail, dialect);
  return {.genome = std::move(followed.genome),
          .parents = {seed.id},
          .mutator = {},
          .dropped = std::move(followed.dropped),
          .fault = {}};
}

void check_seed(const Individual& seed) {
  const Verdict verdict = seed.verdict();
  if (verdict != Verdict::Ok && verdict != Verdict::Duplicate) {
    throw InputError(fmt::format("seed {} does not pass ({}: {}); correct it or leave it out",
                                 seed.genome.seed, to_string(verdict), seed.fitness.detail));
  }
}

} // namespace

Search::Search(const SearchSettings& settings, std::vector<Genome> seeds, Dialect dialect,
               FitnessEvaluator& evaluator, Observer& observer, std::stop_token stop)
    : settings_(settings), seeds_(std::move(seeds)), dialect_(std::move(dialect)),
      evaluator_(evaluator), observer_(observer), stop_(std::move(stop)) {
  const int half = (settings_.population + 1) / 2;
  islands_[0] = {.first_slot = 0, .size = half, .members = {}};
  islands_[1] = {.first_slot = half, .size = settings_.population - half, .members = {}};
}

void Search::run(const std::optional<Genome>& incumbent, const std::vector<Founder>& founders) {
  Pipeline pipeline(evaluator_, settings_.jobs, stop_,
                    {.better = [this](const Individual& i) { observer_.better(i); },
                     .settled = [this](const Individual& i) { observer_.settled(i); }});
  if (!plant(pipeline, incumbent, founders) || settings_.generations == 0) {
    return;
  }
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    breed(pipeline, 1, i);
  }
  for (int number = 1; number <= settings_.generations; ++number) {
    Generation generation{.number = number, .complete = true, .children = {}, .survivors = {}};
    for (std::size_t i = 0; i < islands_.size(); ++i) {
      Island& island = islands_[i];
      const std::vector<Individual> children = pipeline.wait();
      record(children);
      island.members = survivors(island.members, children, static_cast<std::size_t>(island.size));
      generation.complete &= std::cmp_equal(children.size(), island.size);
      generation.children.insert(generation.children.end(), children.begin(), children.end());
      if (generation.complete && number < settings_.generations) {
        if (number % migration_interval == 0) {
          take_migrant(i);
        }
        breed(pipeline, number + 1, i);
      }
      generation.survivors.push_back(island.members);
    }
    if (!generation.children.empty()) {
      observer_.generation(generation);
    }
    if (!generation.complete) {
      return;
    }
  }
}

/// Judges the seeds and founders, which become the first members of every island, and the
/// incumbent. False when stopped meanwhile.
bool Search::plant(Pipeline& pipeline, const std::optional<Genome>& incumbent,
                   const std::vector<Founder>& founders) {
  std::vector<Pipeline::Propose> proposals;
  const auto as_it_stands = [](const Genome& genome) {
    return [genome] { return Proposal{genome, {}, {}, {}, {}}; };
  };
  std::ranges::transform(seeds_, std::back_inserter(proposals), as_it_stands);
  if (incumbent) {
    proposals.push_back(as_it_stands(*incumbent));
  }
  for (const Founder& founder : founders) {
    const auto seed = std::ranges::find(seeds_, founder.seed, &Genome::seed);
    if (seed != seeds_.end()) {
      proposals.push_back(
          [this, founder, seed] { return descend(*seed, founder.trail, dialect_); });
    }
  }
  const std::size_t expected = proposals.size();
  pipeline.submit(0, 0, std::move(proposals));

  const auto is_seed = [&](const Individual& individual) {
    return std::cmp_less(individual.slot, seeds_.size());
  };
  Generation generation{
      .number = 0, .complete = true, .children = pipeline.wait(), .survivors = {}};
  generation.complete = generation.children.size() == expected;
  std::vector<Individual> planted = generation.children;
  std::erase_if(planted, [&](const Individual& i) { return i.parents.empty() && !is_seed(i); });
  std::ranges::for_each(planted | std::views::filter(is_seed), check_seed);
  record(generation.children);
  for (Island& island : islands_) {
    island.members = survivors({}, planted, planted.size());
    generation.survivors.push_back(island.members);
  }
  if (!generation.children.empty()) {
    observer_.generation(generation);
  }
  return generation.complete;
}

void Search::breed(Pipeline& pipeline, int generation, std::size_t island) {
  const auto nursery = std::make_shared<const Nursery>(
      Nursery{islands_[island].members, seeds_, archive_.ids(), credit_});
  const int first = islands_[island].first_slot;
  std::vector<Pipeline::Propose> proposals;
  for (int slot = first; slot < first + islands_[island].size; ++slot) {
    proposals.push_back([this, nursery, generation, slot] {
      return evo::breed(*nursery, dialect_, random_for(settings_.seed, generation, slot));
    });
  }
  pipeline.submit(generation, first, std::move(proposals));
}

/// The best of the other island, as far as its generations are complete, joins this one.
void Search::take_migrant(std::size_t island) {
  const std::vector<Individual>& others = islands_[1 - island].members;
  islands_[island].members = survivors(islands_[island].members, {others.front()},
                                       static_cast<std::size_t>(islands_[island].size));
}

void Search::record(const std::vector<Individual>& individuals) {
  std::vector<Credit::Earning> earnings;
  for (const Individual& individual : individuals) {
    if (!individual.mutator.empty()) {
      earnings.push_back({individual.mutator, gain_of(individual)});
    }
    archive_.add(individual);
    lineage_.add(individual);
  }
  credit_.add(earnings);
}

/// The logarithm of how much faster a child is than its fittest parent; 0 where it is not. A right
/// child of frail parents gains, whatever it costs.
double Search::gain_of(const Individual& child) const {
  double best = 0;
  bool frail = true;
  for (const std::string& parent : child.parents) {
    const Individual* known = archive_.find(parent);
    best = std::max(best, known == nullptr ? 0 : known->pace());
    frail = frail && known != nullptr && known->frail();
  }
  if (best == 0 || child.pace() == 0) {
    return 0;
  }
  constexpr double mended = 0.3;
  return std::max({std::log(child.pace() / best), child.viable() && frail ? mended : 0.0, 0.0});
}

} // namespace evo
