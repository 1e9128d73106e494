#include "population/founders.hpp"

#include "population/selection.hpp"

namespace evo {
namespace {

constexpr std::size_t considered = 100;  // of each context
constexpr std::size_t most_founders = 6; // beyond the fittest of each niche

} // namespace

std::vector<Founder> founders(const Store& store) {
  std::vector<Founder> result;
  for (const Individual& individual : survivors({}, store.fittest(considered), most_founders)) {
    if (!individual.genome.trail.empty()) {
      result.push_back({individual.genome.seed, individual.genome.trail});
    }
  }
  return result;
}

} // namespace evo
