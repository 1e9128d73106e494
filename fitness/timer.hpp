// Time on the card as the outside judge takes it.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include <driver_types.h>

#include "fitness/call_time.hpp"

namespace evo {

struct TimingOptions {
  int calls = 1;
  /// Ends early, after three calls, once the median is above this.
  double stop_above_ms = std::numeric_limits<double>::infinity();
  /// Ends early, after ten calls, once all of them took this long together.
  double enough_ms = std::numeric_limits<double>::infinity();
};

/// Two events of the default stream.
class Timer {
public:
  Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();

  /// The call stands between two events and is followed by a synchronisation of the device.
  /// Whatever `call` throws passes through; a CUDA error is a CandidateFailure (LaunchError).
  CallTime time(const std::function<void()>& call) const;

private:
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

/// Calls `time_once` as often as the options say.
std::vector<CallTime> repeat(const std::function<CallTime()>& time_once,
                             const TimingOptions& options);

} // namespace evo
