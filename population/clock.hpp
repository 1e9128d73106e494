// Time that passes while something runs.
#pragma once

#include <chrono>

namespace evo {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

} // namespace evo
