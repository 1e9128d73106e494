#include "fitness/sequential_test.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include <boost/math/distributions/students_t.hpp>

namespace evo {
namespace {

/// Nominal two-sided level of each look for 5 % in all: Pocock 1977, six looks.
constexpr double level_per_look = 0.0142;
static_assert(SequentialTest::most_blocks / SequentialTest::look_step == 6);

} // namespace

Estimate student_interval(const std::vector<double>& log_ratios, double level) {
  const auto n = static_cast<double>(log_ratios.size());
  if (n < 1) {
    return {.ratio = 1, .low = 0, .high = std::numeric_limits<double>::infinity()};
  }
  const double mean = std::accumulate(log_ratios.begin(), log_ratios.end(), 0.0) / n;
  if (n < 2) {
    return {.ratio = std::exp(mean), .low = 0, .high = std::numeric_limits<double>::infinity()};
  }
  double squares = 0;
  for (const double x : log_ratios) {
    squares += (x - mean) * (x - mean);
  }
  const boost::math::students_t student(n - 1);
  const double reach = quantile(complement(student, level / 2)) * std::sqrt(squares / (n - 1) / n);
  return {std::exp(mean), std::exp(mean - reach), std::exp(mean + reach)};
}

Decision SequentialTest::decision() const {
  if (blocks() == 0 || blocks() % look_step != 0) {
    return Decision::Undecided;
  }
  const Estimate now = estimate();
  if (now.low > 1) {
    return Decision::Faster;
  }
  return now.high < least_gain || blocks() >= most_blocks ? Decision::NotFaster
                                                          : Decision::Undecided;
}

Estimate SequentialTest::estimate() const {
  return student_interval(log_ratios_, level_per_look);
}

} // namespace evo
