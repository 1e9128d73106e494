// What a launch does to memory, found by running its blocks: the evidence that a reshaped kernel
// still does the same.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <variant>
#include <vector>

#include "mutators/analysis/evaluator.hpp"
#include "mutators/analysis/launches.hpp"

namespace evo {

/// What happened to one buffer.
struct BufferUse {
  std::vector<std::uint8_t> read; // per element, 0 or 1; up to the last element touched
  std::vector<std::uint8_t> written;
  bool read_once_per_block = true;  // no block reads an element twice
  bool read_once_per_thread = true; // no thread does
};

struct Footprint {
  std::map<int, BufferUse> buffers;         // by Buffer::id
  std::int64_t shared_elements_written = 0; // different ones, by the last block
};

/// Runs the given blocks of a launch; a Failure of kind Unknown also stands for blocks that all
/// together, going by the first, would take seconds. One of kind Fault also stands for: two threads
/// touch one shared element between two barriers and one of them writes, a thread reads a shared
/// element that the block has not written, two threads write one element of a buffer, or one writes
/// what another reads.
std::variant<Footprint, Failure> footprint(Evaluator& evaluator, const EvaluatedLaunch& launch,
                                           const std::vector<Extent3>& blocks);

/// Whether the first block of some launch has such a fault, or cannot be followed.
bool has_races(const Kernel& kernel, const std::vector<std::int64_t>& dims);

/// Whether `after` reads and writes the same elements as `before`, and nothing more often in a
/// block or a thread than once where once sufficed; of the buffers in `free`, by Buffer::id, it may
/// use any elements.
bool same_use(const Footprint& before, const Footprint& after, const std::set<int>& free = {});

} // namespace evo
