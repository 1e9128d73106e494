#include "fitness/cpu/order.hpp"

#include <algorithm>
#include <numeric>

namespace evo::cpu {

std::vector<unsigned> Permuter::next(unsigned count) {
  std::vector<unsigned> order(count);
  std::iota(order.begin(), order.end(), 0u);
  if (order_ == ThreadOrder::Descending) {
    std::ranges::reverse(order);
  } else if (order_ == ThreadOrder::Shuffled) {
    for (unsigned i = count; i > 1; --i) {
      std::swap(order[i - 1], order[random() % i]);
    }
  }
  return order;
}

/// SplitMix64.
std::uint64_t Permuter::random() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

} // namespace evo::cpu
