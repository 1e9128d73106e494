// What every launch of a call does at sizes too large to run on the CPU.
#pragma once

#include <vector>

#include "fitness/protocol.hpp"

namespace evo::cpu {

/// `launches`, of which only the configuration is known, with what their blocks do: that grows
/// linearly with the size (the reduction gets longer), and the same launches counted at two other
/// sizes tell how. Empty when the three do not launch the same kernels.
std::vector<LaunchCounts> extrapolate(const std::vector<LaunchCounts>& near,
                                      const std::vector<LaunchCounts>& far,
                                      std::vector<LaunchCounts> launches);

} // namespace evo::cpu
