#include "population/selection.hpp"

#include <algorithm>

namespace evo {

const Individual& tournament(const std::vector<Individual>& members, std::size_t size,
                             Random& random) {
  const Individual* best = &members[pick(random, members.size())];
  for (std::size_t i = 1; i < size; ++i) {
    const Individual& other = members[pick(random, members.size())];
    if (fitter(other, *best)) {
      best = &other;
    }
  }
  return *best;
}

std::vector<Individual> survivors(const std::vector<Individual>& members,
                                  const std::vector<Individual>& children, std::size_t count) {
  std::vector<Individual> result;
  for (const auto* group : {&members, &children}) {
    std::ranges::copy_if(*group, std::back_inserter(result), &Individual::viable);
  }
  std::ranges::sort(result, fitter);
  const auto same_id = [](const Individual& a, const Individual& b) {
    return a.genome.id == b.genome.id;
  };
  const auto rest = std::ranges::unique(result, same_id);
  result.erase(rest.begin(), rest.end());
  result.resize(std::min(result.size(), count));
  return result;
}

} // namespace evo
