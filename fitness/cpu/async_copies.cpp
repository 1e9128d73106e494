#include "fitness/cpu/async_copies.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace evo::cpu {

void AsyncCopy::carry_out() const {
  auto* const target = reinterpret_cast<std::byte*>(to);
  const std::size_t copied = size - zero_filled;
  std::memcpy(target, reinterpret_cast<const void*>(from), copied);
  std::memset(target + copied, 0, zero_filled);
}

bool AsyncCopies::overlaps(unsigned thread, std::uintptr_t to, std::size_t size) const {
  const Thread& copies = threads_[thread];
  const auto overlaps = [&](const AsyncCopy& copy) {
    return copy.to < to + size && to < copy.to + copy.size;
  };
  return std::ranges::any_of(copies.open, overlaps) ||
         std::ranges::any_of(copies.groups, [&](const std::vector<AsyncCopy>& group) {
           return std::ranges::any_of(group, overlaps);
         });
}

void AsyncCopies::commit(unsigned thread) {
  Thread& copies = threads_[thread];
  copies.groups.push_back(std::exchange(copies.open, {}));
}

std::vector<AsyncCopy> AsyncCopies::wait(unsigned thread, std::size_t groups_in_flight) {
  auto& groups = threads_[thread].groups;
  std::vector<AsyncCopy> arrived;
  if (groups.size() > groups_in_flight) {
    const auto last = groups.end() - static_cast<std::ptrdiff_t>(groups_in_flight);
    for (auto group = groups.begin(); group != last; ++group) {
      arrived.insert(arrived.end(), group->begin(), group->end());
    }
    groups.erase(groups.begin(), last);
  }
  return arrived;
}

} // namespace evo::cpu
