#include "fitness/cpu/counter.hpp"

#include <algorithm>
#include <bit>

namespace evo::cpu {
namespace {

constexpr std::size_t sector_bytes = 32;
constexpr std::size_t bank_bytes = 4;
constexpr std::size_t banks = 32;
constexpr std::size_t max_bytes = 128; // of one lane; what is wider counts as this

/// Distinct values of address / unit over all bytes that the lanes in `lanes` access.
class Units {
public:
  Units(const std::array<std::uintptr_t, warp_size>& addresses, std::uint32_t lanes,
        std::size_t bytes, std::size_t unit) {
    for (; lanes != 0; lanes &= lanes - 1) {
      const std::uintptr_t address = addresses[static_cast<std::size_t>(std::countr_zero(lanes))];
      const std::uintptr_t last = (address + bytes - 1) / unit;
      for (std::uintptr_t index = address / unit; index <= last; ++index) {
        found_[size_++] = index;
      }
    }
    if (!std::is_sorted(begin(), end())) {
      std::sort(begin(), end());
    }
    size_ = static_cast<std::size_t>(std::unique(begin(), end()) - begin());
  }

  std::uintptr_t* begin() { return found_.data(); }
  std::uintptr_t* end() { return found_.data() + size_; }
  std::size_t size() const { return size_; }

private:
  // No access is wider than max_bytes, and one that is not aligned touches one unit more.
  std::array<std::uintptr_t, warp_size*(max_bytes / bank_bytes + 1)> found_;
  std::size_t size_ = 0;
};

/// Shared memory serves 32 words in different banks, or one word to many lanes, at a time. Wider
/// accesses are served by as many lanes at a time as make up 128 bytes.
double wavefronts(const std::array<std::uintptr_t, warp_size>& addresses, std::uint32_t lanes,
                  std::size_t bytes) {
  const unsigned group =
      static_cast<unsigned>(banks * bank_bytes / std::max<std::size_t>(bytes, bank_bytes));
  double total = 0;
  for (unsigned first = 0; first < warp_size; first += group) {
    const std::uint32_t mask = group == warp_size ? ~0u : ((1u << group) - 1) << first;
    std::array<int, banks> load{};
    for (const std::uintptr_t word : Units(addresses, lanes & mask, bytes, bank_bytes)) {
      ++load[word % banks];
    }
    total += *std::ranges::max_element(load);
  }
  return total;
}

} // namespace

void AccessCounter::begin_launch(unsigned threads, int sites) {
  sites_ = sites;
  streams_.assign(std::size_t{(threads + warp_size - 1) / warp_size} * sites * 2, {});
  used_.clear();
  counts_ = {};
}

void AccessCounter::record(int site, unsigned thread, std::uintptr_t address, std::size_t bytes,
                           Space space, bool store, bool held) {
  const unsigned lane = thread % warp_size;
  const std::size_t index = (std::size_t{thread / warp_size} * sites_ + site) * 2 + store;
  Stream& stream = streams_[index];
  if (!stream.listed) {
    stream.listed = true;
    used_.push_back(index);
  }
  const unsigned execution = stream.executions[lane]++;
  if (held) {
    return;
  }
  if (stream.accesses.size() <= execution) {
    stream.accesses.resize(execution + 1);
  }
  WarpAccess& access = stream.accesses[execution];
  access.addresses[lane] = address;
  access.lanes |= 1u << lane;
  access.bytes = static_cast<std::uint8_t>(std::min(bytes, max_bytes));
  access.space = space;
}

void AccessCounter::flush() {
  for (const std::size_t index : used_) {
    for (const WarpAccess& access : streams_[index].accesses) {
      if (access.lanes != 0) {
        count(access, index % 2 != 0);
      }
    }
    streams_[index] = {};
  }
  used_.clear();
}

void AccessCounter::count(const WarpAccess& access, bool store) {
  ++counts_.instructions;
  if (access.space == Space::Global) {
    const double sectors = static_cast<double>(
        Units(access.addresses, access.lanes, access.bytes, sector_bytes).size());
    (store ? counts_.global_store_sectors : counts_.global_load_sectors) += sectors;
  } else {
    (store ? counts_.shared_store_wavefronts : counts_.shared_load_wavefronts) +=
        wavefronts(access.addresses, access.lanes, access.bytes);
  }
}

} // namespace evo::cpu
