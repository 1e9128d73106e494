#include "fitness/block_order.hpp"

#include <algorithm>
#include <numeric>

namespace evo {

std::vector<std::size_t> block_order(std::size_t contenders, std::mt19937_64& random) {
  std::vector<std::size_t> order(contenders);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::shuffle(order, random);
  std::vector<std::size_t> all = order;
  all.insert(all.end(), 2, contenders);
  all.insert(all.end(), order.rbegin(), order.rend());
  return all;
}

} // namespace evo
