// What the blocks of a comparison say, contender by contender. The reference counts as the
// contender after the last.
#pragma once

#include <vector>

#include "fitness/protocol.hpp"

namespace evo {

/// log(time of `slow` / time of `fast`) in one block: the mean over sizes and calls.
double log_ratio(const TimedBlock& block, std::size_t slow, std::size_t fast);

/// The same for every block.
std::vector<double> log_ratios(const std::vector<TimedBlock>& blocks, std::size_t slow,
                               std::size_t fast);

/// All calls of a contender at the `size`-th size, in order.
std::vector<double> times_ms(const std::vector<TimedBlock>& blocks, std::size_t contender,
                             std::size_t size);

} // namespace evo
