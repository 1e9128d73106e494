#include "fitness/timer.hpp"

#include <algorithm>
#include <numeric>

#include "fitness/cuda_check.hpp"

namespace evo {
namespace {

/// Linear between neighbours; `times` sorted and not empty.
double quantile(const std::vector<double>& times, double q) {
  const double place = q * static_cast<double>(times.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, times.size() - 1);
  return std::lerp(times[below], times[above], place - static_cast<double>(below));
}

} // namespace

Timing summarize(std::vector<double> times_ms) {
  std::ranges::sort(times_ms);
  return {quantile(times_ms, 0.5), quantile(times_ms, 0.75) - quantile(times_ms, 0.25),
          static_cast<int>(times_ms.size())};
}

Timer::Timer() {
  check_cuda(cudaEventCreate(&start_), "cudaEventCreate");
  check_cuda(cudaEventCreate(&stop_), "cudaEventCreate");
}

Timer::~Timer() {
  cudaEventDestroy(start_);
  cudaEventDestroy(stop_);
}

double Timer::time_ms(const std::function<void()>& call) const {
  check_cuda(cudaEventRecord(start_), "cudaEventRecord");
  call();
  check_cuda(cudaEventRecord(stop_), "cudaEventRecord");
  check_cuda(cudaDeviceSynchronize(), "a timed call");
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, start_, stop_), "cudaEventElapsedTime");
  return ms;
}

Timing Timer::measure(const std::function<void()>& call, const TimingOptions& options) const {
  for (int i = 0; i < options.warm_up; ++i) {
    time_ms(call);
  }
  std::vector<double> times;
  double total = 0;
  while (static_cast<int>(times.size()) < options.calls) {
    times.push_back(time_ms(call));
    total += times.back();
    if ((times.size() >= 3 && summarize(times).median_ms > options.stop_above_ms) ||
        (times.size() >= 10 && total > options.enough_ms)) {
      break;
    }
  }
  return summarize(times);
}

} // namespace evo
