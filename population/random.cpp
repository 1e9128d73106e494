#include "population/random.hpp"

#include <boost/random/bernoulli_distribution.hpp>
#include <boost/random/uniform_int_distribution.hpp>

namespace evo {
namespace {

/// The finalizer of SplitMix64: every bit of the input changes about half of the output's.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

} // namespace

Random random_for(std::uint64_t run_seed, int generation, int slot) {
  const auto with_generation = mix(mix(run_seed) ^ static_cast<std::uint64_t>(generation));
  return Random(mix(with_generation ^ static_cast<std::uint64_t>(slot)));
}

std::size_t pick(Random& random, std::size_t count) {
  return boost::random::uniform_int_distribution<std::size_t>(0, count - 1)(random);
}

bool chance(Random& random, double probability) {
  return boost::random::bernoulli_distribution<double>(probability)(random);
}

} // namespace evo
