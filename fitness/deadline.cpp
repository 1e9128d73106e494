#include "fitness/deadline.hpp"

#include <cmath>
#include <numeric>

namespace evo {
namespace {

constexpr double floor_ms = 3000;
constexpr double multiple = 6; // a candidate may be slower than this and more, for it stops early

} // namespace

std::chrono::milliseconds answer_deadline(const std::vector<double>& times_ms, int calls) {
  if (times_ms.empty()) {
    return deadline_without_incumbent;
  }
  const double work_ms = calls * std::accumulate(times_ms.begin(), times_ms.end(), 0.0);
  return std::chrono::milliseconds(std::llround(floor_ms + multiple * work_ms));
}

} // namespace evo
