// Deterministic permutations: the same on every platform.
#pragma once

#include <cstdint>
#include <vector>

#include "fitness/cpu/executor.hpp"

namespace evo::cpu {

/// Deals out permutations of [0, count) in one order of threads; the shuffled ones differ from each
/// other and depend on the seed alone.
class Permuter {
public:
  Permuter(ThreadOrder order, std::uint64_t seed) : order_(order), state_(seed) {}

  std::vector<unsigned> next(unsigned count);

private:
  std::uint64_t random();

  ThreadOrder order_;
  std::uint64_t state_;
};

} // namespace evo::cpu
