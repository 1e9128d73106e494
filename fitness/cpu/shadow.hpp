// Who accessed a location last: enough to tell every conflicting access on the executed path.
#pragma once

#include <cstdint>

#include "fitness/cpu/abi.hpp"

namespace evo::cpu {

using evo_gpu::Access;

inline constexpr unsigned warp_size = 32;
inline constexpr unsigned max_threads = 1024;

/// One thread in one stretch of execution between two barriers: the interval between barriers of
/// its block, the interval between barriers of its warp in that, and its index in the block. An
/// interval's number is never used again, in no other block and no other launch. 0: nobody.
using Stamp = std::uint64_t;

constexpr Stamp make_stamp(std::uint64_t interval, unsigned warp_interval, unsigned thread) {
  return interval << 28 | Stamp{warp_interval} << 10 | thread;
}
constexpr std::uint64_t interval_of(Stamp stamp) {
  return stamp >> 28;
}
constexpr unsigned warp_interval_of(Stamp stamp) {
  return stamp >> 10 & ((1u << 18) - 1);
}
constexpr unsigned thread_of(Stamp stamp) {
  return stamp & (max_threads - 1);
}

/// The running thread, and what its accesses can conflict with: those of other blocks since
/// `launch` (in global memory), and those of its own block in the same interval.
struct Now {
  Stamp stamp = 0;
  std::uint64_t launch = 0; // the first interval of this launch
  std::uint64_t block = 0;  // and of this block

  bool conflicts(Stamp past, std::uint64_t since) const {
    const std::uint64_t interval = interval_of(past);
    if (interval < since) {
      return false;
    }
    if (interval < block) {
      return true;
    }
    if (interval != interval_of(stamp) || thread_of(past) == thread_of(stamp)) {
      return false;
    }
    return thread_of(past) / warp_size != thread_of(stamp) / warp_size ||
           warp_interval_of(past) == warp_interval_of(stamp);
  }
};

/// Of all accesses of one kind, two that stand for them: whatever later access conflicts with any
/// of them conflicts with one of these.
struct Recent {
  Stamp last = 0;
  Stamp other = 0; // of another thread

  Stamp conflict(const Now& now, std::uint64_t since) const {
    return now.conflicts(last, since) ? last : now.conflicts(other, since) ? other : 0;
  }
  void remember(const Now& now, std::uint64_t since) {
    if (thread_of(last) != thread_of(now.stamp) || interval_of(last) < now.block) {
      other = now.conflicts(other, since) ? other : last;
    }
    last = now.stamp;
  }
};

/// The result of one access: the stamp it conflicts with (0: none) and what that one did.
struct Touch {
  Stamp conflict = 0;
  Access with = Access::Read;
};

/// The shadow of one granule of memory.
struct Cell {
  Stamp write = 0;
  Recent reads;
  Recent atomics;

  bool written() const { return write != 0 || atomics.last != 0; }

  /// Whether the running thread holds the value in a register already.
  bool held(const Now& now) const { return reads.last == now.stamp || write == now.stamp; }

  Touch read(const Now& now, std::uint64_t since) {
    if (reads.last == now.stamp) {
      return {};
    }
    if (now.conflicts(write, since)) {
      return {write, Access::Write};
    }
    if (const Stamp past = atomics.conflict(now, since)) {
      return {past, Access::Atomic};
    }
    reads.remember(now, since);
    return {};
  }

  Touch modify(const Now& now, std::uint64_t since, bool atomic) {
    if (now.conflicts(write, since)) {
      return {write, Access::Write};
    }
    if (const Stamp past = reads.conflict(now, since)) {
      return {past, Access::Read};
    }
    if (const Stamp past = atomic ? 0 : atomics.conflict(now, since)) {
      return {past, Access::Atomic};
    }
    if (atomic) {
      atomics.remember(now, since);
    } else {
      write = now.stamp;
    }
    return {};
  }
};

} // namespace evo::cpu
