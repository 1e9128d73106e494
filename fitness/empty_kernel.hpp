// What a launch costs that does nothing: no candidate can be faster.
#pragma once

#include "fitness/timer.hpp"

namespace evo {

/// Milliseconds, the median of a hundred launches; 0 where the driver does not take the kernel.
double time_empty_kernel(const Timer& timer);

} // namespace evo
