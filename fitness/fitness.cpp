#include "fitness/fitness.hpp"

#include <cmath>

namespace evo {

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
