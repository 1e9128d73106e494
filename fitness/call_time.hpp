// What the clocks say of a timed call, and whether they agree.
#pragma once

#include <string>
#include <vector>

namespace evo {

/// Milliseconds of one call.
struct CallTime {
  double event_ms = 0; // between the two events: the figure that ranks
  double wall_ms = 0;  // of the host's clock, from before the first event until the device is idle
  double tail_ms = 0;  // of the host's clock, from the second event's end until the device is idle
};

/// Fewer calls than this say nothing about the clocks.
inline constexpr int least_calls_to_doubt = 5;

/// One sentence when the clocks show, call after call, that work goes on where the events do not
/// see it; empty when they agree, or there are too few calls to tell.
///
/// The host may be kept waiting for the processor at any time, which is no fault of the candidate:
/// so the tail, which is short unless the device is busy, counts by its median, and the whole
/// call by its best case. The margin is a fifth of the median event time and 0.2 ms.
std::string clocks_disagree(const std::vector<CallTime>& calls);

/// Median and interquartile range.
struct TimeSummary {
  double median_ms = 0;
  double spread_ms = 0; // interquartile range
  int calls = 0;
};

/// Linear between neighbours; `values` not empty, `q` in [0, 1].
double quantile(std::vector<double> values, double q);

/// `times_ms` not empty.
TimeSummary summarize(std::vector<double> times_ms);

/// Of the event times.
TimeSummary summarize(const std::vector<CallTime>& calls);

} // namespace evo
