#include "population/random.hpp"

#include <boost/random/bernoulli_distribution.hpp>
#include <boost/random/discrete_distribution.hpp>
#include <boost/random/uniform_int_distribution.hpp>

#include "fitness/mix.hpp"

namespace evo {

Random random_for(std::uint64_t run_seed, int generation, int slot) {
  const auto with_generation = mix(mix(run_seed) ^ static_cast<std::uint64_t>(generation));
  return Random(mix(with_generation ^ static_cast<std::uint64_t>(slot)));
}

std::size_t pick(Random& random, std::size_t count) {
  return boost::random::uniform_int_distribution<std::size_t>(0, count - 1)(random);
}

std::size_t pick_weighted(Random& random, const std::vector<double>& weights) {
  return boost::random::discrete_distribution<std::size_t, double>(weights)(random);
}

bool chance(Random& random, double probability) {
  return boost::random::bernoulli_distribution<double>(probability)(random);
}

} // namespace evo
