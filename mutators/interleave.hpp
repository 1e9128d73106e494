// Which rows or columns of a block's tile a thread computes.
#pragma once

#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"
#include "mutators/thread_block.hpp"

namespace evo {

/// Deals a tile's rows or columns out to threads in smaller groups, or in groups of another size:
/// "gemm/thread_col groups 4". See remap_threads.cpp.
std::vector<Rewrite> interleavings(const Kernel& kernel, const ThreadBlock& block,
                                   ThreadExchange& exchange);

} // namespace evo
