#include "fitness/block_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace evo {
namespace {

const std::vector<double>& calls_of(const BlockTimes& times, std::size_t contender) {
  return contender < times.contenders_ms.size() ? times.contenders_ms[contender]
                                                : times.reference_ms;
}

double mean_logarithm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += std::log(value);
  }
  return sum / static_cast<double>(values.size());
}

} // namespace

double log_ratio(const TimedBlock& block, std::size_t slow, std::size_t fast) {
  double sum = 0;
  for (const BlockTimes& times : block.sizes) {
    sum += mean_logarithm(calls_of(times, slow)) - mean_logarithm(calls_of(times, fast));
  }
  return sum / static_cast<double>(block.sizes.size());
}

std::vector<double> log_ratios(const std::vector<TimedBlock>& blocks, std::size_t slow,
                               std::size_t fast) {
  std::vector<double> ratios;
  std::ranges::transform(blocks, std::back_inserter(ratios),
                         [&](const TimedBlock& block) { return log_ratio(block, slow, fast); });
  return ratios;
}

std::vector<double> times_ms(const std::vector<TimedBlock>& blocks, std::size_t contender,
                             std::size_t size) {
  std::vector<double> times;
  for (const TimedBlock& block : blocks) {
    const std::vector<double>& calls = calls_of(block.sizes[size], contender);
    times.insert(times.end(), calls.begin(), calls.end());
  }
  return times;
}

} // namespace evo
