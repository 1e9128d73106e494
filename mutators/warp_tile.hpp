// Which threads a warp consists of.
#pragma once

#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"
#include "mutators/thread_block.hpp"

namespace evo {

/// Deals the positions of a block's threads out to warps in tiles of M x N, or changes M x N:
/// "gemm/lanes 4x8". See remap_threads.cpp.
std::vector<Rewrite> warp_tiles(const Kernel& kernel, const ThreadBlock& block,
                                ThreadExchange& exchange);

} // namespace evo
