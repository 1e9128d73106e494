// A plain reduction tiled through shared memory (see tile_reduction.cpp for when that is legal).
#pragma once

#include <optional>
#include <vector>

#include "mutators/analysis/plain_reduction.hpp"
#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace evo {

/// Elements of the result per block, steps of the sum per shared tile, elements per thread.
struct TileShape {
  int block_m = 0;
  int block_n = 0;
  int block_k = 0;
  int thread_m = 0;
  int thread_n = 0;

  int threads() const { return block_m / thread_m * (block_n / thread_n); }
  int shared_bytes() const { return (block_m + block_n) * block_k * 4; }
};

/// The kernel's body in the tiled form, with the shape's constants and the struct of shared tiles
/// before it, and the launch that goes with it. nullopt where a macro or a variable that changes is
/// in the way.
std::optional<std::vector<Edit>> tile(const Kernel& kernel, const PlainReduction& reduction,
                                      const TileShape& shape);

} // namespace evo
