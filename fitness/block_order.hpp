// In which order a comparison calls its contenders.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace evo {

/// The calls of one block at one size: every contender twice, in an order that reads the same
/// backwards (A B R R B A), so that a clock that drifts steadily drifts alike for all. `contenders`
/// itself stands for the reference, in the middle. Who goes first is drawn, so that neither what
/// runs before a contender nor a clock that goes up and down in step with the calls favours one.
std::vector<std::size_t> block_order(std::size_t contenders, std::mt19937_64& random);

} // namespace evo
