// Time on the card as the outside judge takes it.
#pragma once

#include <functional>
#include <limits>

#include <driver_types.h>

namespace evo {

struct Timing {
  double median_ms = 0;
  double spread_ms = 0; // interquartile range
  int calls = 0;
};

struct TimingOptions {
  int warm_up = 0;
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

  /// Each call stands between two events and is followed by a synchronisation of the device.
  /// Whatever `call` throws passes through; a CUDA error is a Failure (LaunchError).
  Timing measure(const std::function<void()>& call, const TimingOptions& options) const;

private:
  double time_ms(const std::function<void()>& call) const;

  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

/// Median and interquartile range.
Timing summarize(std::vector<double> times_ms);

} // namespace evo
