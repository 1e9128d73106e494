#include "population/archive.hpp"

#include <utility>

namespace evo {

void Archive::add(Individual individual) {
  const Individual& kept = individuals_.emplace_back(std::move(individual));
  ++counts_[kept.verdict()];
  by_id_.try_emplace(kept.genome.id, &kept);
  if (kept.elite) {
    best_ = &kept;
  }
}

const Individual* Archive::find(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

const Individual* Archive::best() const {
  return best_;
}

std::set<std::string> Archive::ids() const {
  std::set<std::string> result;
  for (const auto& [id, individual] : by_id_) {
    result.insert(id);
  }
  return result;
}

} // namespace evo
