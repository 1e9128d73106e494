#include "fitness/fitness.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace evo {

Fitness failed(Verdict verdict, std::string detail, bool measured) {
  return {.verdict = verdict, .detail = std::move(detail), .measured = measured, .sizes = {}};
}

std::vector<double> medians(const Fitness& fitness) {
  std::vector<double> result;
  std::ranges::transform(fitness.sizes, std::back_inserter(result), &SizeResult::median_ms);
  return result;
}

double geometric_mean_speedup(const std::vector<SizeResult>& sizes) {
  if (sizes.empty()) {
    return 0;
  }
  double logarithms = 0;
  for (const SizeResult& size : sizes) {
    logarithms += std::log(size.reference_ms / size.median_ms);
  }
  return std::exp(logarithms / static_cast<double>(sizes.size()));
}

} // namespace evo
