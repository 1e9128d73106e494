// How a warp's accesses fall on memory: sectors, bank conflicts, instructions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fitness/cpu/array.hpp"

namespace evo::cpu {

/// Of one launch.
struct AccessCounts {
  double global_load_sectors = 0;
  double global_store_sectors = 0;
  double shared_load_wavefronts = 0;
  double shared_store_wavefronts = 0;
  double instructions = 0;
};

/// Puts the accesses of single threads together into those of warps: the n-th execution of a site
/// by one lane belongs to the n-th execution of the same site by the others, between two barriers.
class AccessCounter {
public:
  void begin_launch(unsigned threads, int sites);
  /// `held`: the thread has the value in a register (it read or wrote the location since the last
  /// barrier), so that only the execution counts and no access is made.
  void record(int site, unsigned thread, std::uintptr_t address, std::size_t bytes, Space space,
              bool store, bool held);
  /// At every barrier and at a block's end.
  void flush();
  const AccessCounts& counts() const { return counts_; }

private:
  struct WarpAccess {
    std::array<std::uintptr_t, warp_size> addresses;
    std::uint32_t lanes = 0; // bit per lane that takes part
    std::uint8_t bytes = 0;
    Space space = Space::Private;
  };
  struct Stream {
    bool listed = false;                          // in used_
    std::vector<WarpAccess> accesses;             // by execution
    std::array<unsigned, warp_size> executions{}; // per lane
  };

  void count(const WarpAccess& access, bool store);

  int sites_ = 0;
  std::vector<Stream> streams_; // by warp, site, and load or store
  std::vector<std::size_t> used_;
  AccessCounts counts_;
};

} // namespace evo::cpu
