#include "population/archive.hpp"

#include <algorithm>
#include <utility>

namespace evo {

void Archive::add(Individual individual) {
  Individual& kept = individuals_.emplace_back(std::move(individual));
  ++counts_[kept.verdict()];
  count(failures_, kept);
  known_ += kept.known ? 1 : 0;
  by_id_.try_emplace(kept.genome.id, &kept);
  if (kept.elite) {
    best_ = &kept;
  }
}

void Archive::update(const Individual& individual) {
  Individual& kept = *by_id_.at(individual.genome.id);
  if (individual.elite || best_ == &kept) {
    best_ = individual.elite ? &kept : nullptr;
  }
  kept.fitness = individual.fitness;
}

const Individual* Archive::find(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

const Individual* Archive::best() const {
  return best_;
}

std::vector<const Individual*> Archive::fittest(std::size_t count) const {
  std::vector<const Individual*> all;
  for (const Individual& individual : individuals_) {
    if (individual.viable() && by_id_.at(individual.genome.id) == &individual) {
      all.push_back(&individual);
    }
  }
  std::ranges::sort(all, [this](const Individual* a, const Individual* b) {
    return (a == best_) != (b == best_) ? a == best_ : fitter(*a, *b);
  });
  all.resize(std::min(count, all.size()));
  return all;
}

std::set<std::string> Archive::ids() const {
  std::set<std::string> result;
  for (const auto& [id, individual] : by_id_) {
    result.insert(id);
  }
  return result;
}

} // namespace evo
