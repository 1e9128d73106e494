// What the 32 lanes of a warp do together: shuffles, ldmatrix and mma.sync.
#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "fitness/cpu/device.hpp"

namespace evo::cpu {
namespace {

struct Shuffle {
  unsigned value;
  unsigned source; // lane
  unsigned result;
};

void shuffle_lanes(const Lanes& lanes) {
  for (void* lane : lanes) {
    Shuffle& own = *static_cast<Shuffle*>(lane);
    own.result = static_cast<const Shuffle*>(lanes[own.source % warp_size])->value;
  }
}

constexpr std::size_t matrix_rows = 8;
constexpr std::size_t row_bytes = 16;
constexpr std::size_t element_bytes = 2; // that transposing takes a matrix to have

/// The address at a range or near it that ends in these 32 bits.
std::uintptr_t widened(const Range& range, unsigned address) {
  const auto offset = static_cast<std::int32_t>(address - static_cast<unsigned>(range.begin));
  return range.begin + static_cast<std::uintptr_t>(std::intptr_t{offset});
}

/// Where a lane's row begins; then where all rows of its matrices begin.
struct Rows {
  std::uintptr_t own;
  std::array<std::uintptr_t, warp_size> all;
};

void exchange_rows(const Lanes& lanes) {
  Rows first = *static_cast<const Rows*>(lanes[0]);
  std::ranges::transform(lanes, first.all.begin(),
                         [](const void* lane) { return static_cast<const Rows*>(lane)->own; });
  for (void* lane : lanes) {
    static_cast<Rows*>(lane)->all = first.all;
  }
}

} // namespace

void Device::require_whole_warp(unsigned mask, int site) const {
  const unsigned first = thread_of(now_.stamp) / warp_size * warp_size;
  const unsigned long threads = 1ul * launch_->block.x * launch_->block.y * launch_->block.z;
  if (mask != ~0u) {
    fail(Verdict::Hang,
         fmt::format("names the lanes {:08x} of its warp, and on the CPU only all of them can work "
                     "together",
                     mask),
         site);
  }
  if (first + warp_size > threads) {
    fail(Verdict::Hang,
         fmt::format("waits for the 32 lanes of its warp, which has only {}", threads - first),
         site);
  }
}

unsigned Device::shuffle(unsigned mask, unsigned value, unsigned source, int site) {
  require_whole_warp(mask, site);
  Shuffle own{value, source, 0};
  block_->meet(site, &own, shuffle_lanes);
  return own.result;
}

/// A lane is answerable for where its row lies, and for reading what it gets. Nobody writes
/// meanwhile: that would be a race.
void Device::load_matrices(std::span<unsigned> fragment, bool transposed, unsigned row, int site) {
  require_whole_warp(~0u, site);
  const unsigned lane = thread_of(now_.stamp) % warp_size;
  Rows rows{0, {}};
  if (lane < fragment.size() * matrix_rows) {
    rows.own = row_address(row, site);
    checked_range(Access::Read, rows.own, row_bytes, row_bytes, site);
    if (options_.count) {
      counter_.record(site, thread_of(now_.stamp), rows.own, row_bytes, Space::Shared, false,
                      false);
    }
  }
  block_->meet(site, &rows, exchange_rows);
  for (std::size_t matrix = 0; matrix < fragment.size(); ++matrix) {
    const auto* const begins = &rows.all[matrix * matrix_rows];
    const unsigned along = lane / 4; // the register's row, or its column in a transposed matrix
    const unsigned across = lane % 4;
    const auto take = [&](std::uintptr_t from, std::size_t bytes, std::size_t at) {
      mark(checked_range(Access::Read, from, bytes, bytes, site), Access::Read, from, bytes, site);
      std::memcpy(reinterpret_cast<std::byte*>(&fragment[matrix]) + at,
                  reinterpret_cast<const void*>(from), bytes);
    };
    if (transposed) {
      take(begins[2 * across] + along * element_bytes, element_bytes, 0);
      take(begins[2 * across + 1] + along * element_bytes, element_bytes, element_bytes);
    } else {
      take(begins[along] + across * sizeof(unsigned), sizeof(unsigned), 0);
    }
  }
}

/// The address in shared memory of which device code has 32 bits.
std::uintptr_t Device::row_address(unsigned row, int site) {
  const auto holds = [&](const Range* range) {
    return range->space == Space::Shared && range->is_near(widened(*range, row));
  };
  if (!holds(last_range_[site])) {
    const std::vector<Range*> all = ranges();
    const auto found = std::ranges::find_if(all, holds);
    if (found == all.end()) {
      fail(Verdict::OutOfBounds, "reads the row of a matrix outside all shared memory", site);
    }
    last_range_[site] = *found;
  }
  return widened(*last_range_[site], row);
}

void Device::multiply_matrices(evo_gpu::MatrixType type, const MatrixRegisters& registers,
                               int site) {
  require_whole_warp(~0u, site);
  Multiplication own{type, options_.accumulation, registers};
  block_->meet(site, &own, multiply);
}

} // namespace evo::cpu
