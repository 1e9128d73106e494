// Swizzling a shared tile: its columns change places from row to row, so that what stands in one
// column lies in different banks.
//
//   w[k][row] = W[...];             w[k][gemm_w_column(k, row)] = W[...];
//
//   __device__ constexpr int gemm_w_column(int tile_row, int tile_column) {
//     static_assert(gemm_block_m % 32 == 0);
//     return tile_column ^ (tile_row % 8 * 4);
//   }
//
// Columns change places by fours, for accesses as wide as that, where a row is long enough.
#pragma once

#include <optional>
#include <vector>

#include "mutators/analysis/padding.hpp"
#include "mutators/analysis/tile_accesses.hpp"
#include "mutators/rewrite.hpp"

namespace evo {

/// nullopt where an index calls a function or has an effect (so no tile is swizzled twice), where
/// no power of two divides the row's length, or where a wide access would be torn apart.
std::optional<std::vector<Edit>> swizzled(const Kernel& kernel, const clang::FunctionDecl& function,
                                          const TileAccesses& tile,
                                          const std::optional<Padding>& padding);

} // namespace evo
