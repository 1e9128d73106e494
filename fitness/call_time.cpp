#include "fitness/call_time.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "fitness/concat.hpp"

namespace evo {
namespace {

constexpr double relative_margin = 0.2;
constexpr double margin_ms = 0.2;

template <typename Projection>
std::vector<double> each(const std::vector<CallTime>& calls, Projection projection) {
  std::vector<double> values;
  std::ranges::transform(calls, std::back_inserter(values), projection);
  return values;
}

} // namespace

std::string clocks_disagree(const std::vector<CallTime>& calls) {
  if (static_cast<int>(calls.size()) < least_calls_to_doubt) {
    return "";
  }
  const double event_ms = quantile(each(calls, &CallTime::event_ms), 0.5);
  const double tail_ms = quantile(each(calls, &CallTime::tail_ms), 0.5);
  const double unseen_ms = std::ranges::min(
      each(calls, [](const CallTime& call) { return call.wall_ms - call.event_ms; }));
  const double hidden_ms = std::max(tail_ms, unseen_ms);
  if (hidden_ms <= relative_margin * event_ms + margin_ms) {
    return "";
  }
  return concat("its calls take ", event_ms, " ms by the events and keep the device busy for ",
                hidden_ms, " ms beyond them");
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

TimeSummary summarize(std::vector<double> times_ms) {
  return {quantile(times_ms, 0.5), quantile(times_ms, 0.75) - quantile(times_ms, 0.25),
          static_cast<int>(times_ms.size())};
}

TimeSummary summarize(const std::vector<CallTime>& calls) {
  return summarize(each(calls, &CallTime::event_ms));
}

} // namespace evo
