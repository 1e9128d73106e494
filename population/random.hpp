// The only source of randomness: a generator per slot, so that the number of threads and the order
// in which things finish cannot change a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <boost/random/mersenne_twister.hpp>

namespace evo {

using Random = boost::random::mt19937_64;

/// The generator of one slot: a function of the three numbers alone.
Random random_for(std::uint64_t run_seed, int generation, int slot);

/// Uniform in [0, count); count > 0.
std::size_t pick(Random& random, std::size_t count);

/// An index with a probability in proportion to its weight; some weight is more than 0.
std::size_t pick_weighted(Random& random, const std::vector<double>& weights);

/// True with the given probability.
bool chance(Random& random, double probability);

} // namespace evo
