#include "fitness/timer.hpp"

#include <chrono>

#include "fitness/cuda_check.hpp"

namespace evo {

Timer::Timer() {
  check_cuda(cudaEventCreate(&start_), "cudaEventCreate");
  check_cuda(cudaEventCreate(&stop_), "cudaEventCreate");
}

Timer::~Timer() {
  cudaEventDestroy(start_);
  cudaEventDestroy(stop_);
}

CallTime Timer::time(const std::function<void()>& call) const {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const auto begin = Clock::now();
  check_cuda(cudaEventRecord(start_), "cudaEventRecord");
  call();
  check_cuda(cudaEventRecord(stop_), "cudaEventRecord");
  check_cuda(cudaEventSynchronize(stop_), "a timed call");
  const auto seen = Clock::now();
  check_cuda(cudaDeviceSynchronize(), "a timed call");
  const auto idle = Clock::now();
  check_cuda(cudaGetLastError(), "a timed call");
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, start_, stop_), "cudaEventElapsedTime");
  return {ms, Milliseconds(idle - begin).count(), Milliseconds(idle - seen).count()};
}

std::vector<CallTime> repeat(const std::function<CallTime()>& time_once,
                             const TimingOptions& options) {
  std::vector<CallTime> calls;
  double total_ms = 0;
  while (static_cast<int>(calls.size()) < options.calls) {
    calls.push_back(time_once());
    total_ms += calls.back().event_ms;
    if ((calls.size() >= 3 && summarize(calls).median_ms > options.stop_above_ms) ||
        (calls.size() >= 10 && total_ms > options.enough_ms)) {
      break;
    }
  }
  return calls;
}

} // namespace evo
