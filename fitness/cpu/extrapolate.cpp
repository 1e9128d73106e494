#include "fitness/cpu/extrapolate.hpp"

namespace evo::cpu {

std::vector<LaunchCounts> extrapolate(const std::vector<LaunchCounts>& near,
                                      const std::vector<LaunchCounts>& far,
                                      std::vector<LaunchCounts> launches) {
  if (near.size() != launches.size() || far.size() != launches.size()) {
    return {};
  }
  for (std::size_t i = 0; i < launches.size(); ++i) {
    LaunchCounts& launch = launches[i];
    if (near[i].kernel != launch.kernel || far[i].kernel != launch.kernel) {
      return {};
    }
    const double step =
        static_cast<double>(launch.size - near[i].size) / (far[i].size - near[i].size);
    for (double LaunchCounts::* total : launch_totals) {
      const double at_near = near[i].*total / near[i].blocks;
      const double at_far = far[i].*total / far[i].blocks;
      launch.*total = launch.blocks * (at_near + step * (at_far - at_near));
    }
  }
  return launches;
}

} // namespace evo::cpu
