#include "population/selection.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace evo {
namespace {

constexpr std::size_t tournament_size = 3;
constexpr double niche_probability = 0.5;

using Candidates = std::vector<const Individual*>;

Candidates candidates(const std::vector<Individual>& members) {
  Candidates result;
  std::ranges::transform(members, std::back_inserter(result),
                         [](const Individual& member) { return &member; });
  return result;
}

const Individual& winner(const Candidates& candidates, std::size_t draws, Random& random) {
  const Individual* best = candidates[pick(random, candidates.size())];
  for (std::size_t i = 1; i < draws; ++i) {
    const Individual* other = candidates[pick(random, candidates.size())];
    best = fitter(*other, *best) ? other : best;
  }
  return *best;
}

} // namespace

Niche niche_of(const Individual& individual) {
  int most = 0;
  for (const auto& [name, kernel] : individual.kernels) {
    most = std::max(most, kernel.registers);
  }
  return {.precision = precision_class(products_of(individual.kernels)),
          .frail = individual.frail(),
          .registers = most <= 64    ? 0
                       : most <= 128 ? 1
                                     : 2};
}

const Individual& tournament(const std::vector<Individual>& members, std::size_t size,
                             Random& random) {
  return winner(candidates(members), size, random);
}

const Individual& choose_parent(const std::vector<Individual>& members, Random& random) {
  Candidates among = candidates(members);
  if (chance(random, niche_probability)) {
    std::set<Niche> niches;
    std::ranges::transform(members, std::inserter(niches, niches.end()), niche_of);
    const auto niche =
        std::next(niches.begin(), static_cast<std::ptrdiff_t>(pick(random, niches.size())));
    std::erase_if(among, [&](const Individual* member) { return niche_of(*member) != *niche; });
  }
  return winner(among, tournament_size, random);
}

std::vector<Individual> survivors(const std::vector<Individual>& members,
                                  const std::vector<Individual>& children, std::size_t count) {
  std::vector<Individual> all;
  for (const auto* group : {&members, &children}) {
    std::ranges::copy_if(*group, std::back_inserter(all),
                         [](const Individual& individual) { return individual.pace() > 0; });
  }
  std::ranges::sort(all, fitter);
  const auto same_id = [](const Individual& a, const Individual& b) {
    return a.genome.id == b.genome.id;
  };
  const auto rest = std::ranges::unique(all, same_id);
  all.erase(rest.begin(), rest.end());
  std::set<Niche> niches;
  std::vector<Individual> result;
  for (Individual& individual : all) {
    const bool is_first = niches.insert(niche_of(individual)).second;
    if (is_first || (individual.viable() && result.size() < count)) {
      result.push_back(std::move(individual));
    }
  }
  return result;
}

} // namespace evo
