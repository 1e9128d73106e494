// Tiles a plain reduction loop through shared memory: a block of threads computes a tile of the
// result, each thread some elements of it in registers.
//
//   before                                 after "multiply/k tile 64x64x8, 4x4 per thread"
//   const int col = blockIdx.x * threads   for (int k0 = 0; k0 < d; k0 += block_k) {
//                   + threadIdx.x;           ... tiles.w[row][k] = row and k inside ? W[...] : 0;
//   const int row = blockIdx.y;              ... tiles.x[k][col] = k and col inside ? X[...] : 0;
//   if (col < d) {                           __syncthreads();
//     float sum = 0.0f;                      for (int k = 0; k < block_k; ++k)
//     for (int k = 0; k < d; ++k)              for (int i = 0; i < thread_m; ++i)
//       sum += W[row * d + k]                    for (int j = 0; j < thread_n; ++j)
//              * X[k * d + col];                   sum[i][j] += tiles.w[thread_row + i][k]
//     Y[row * d + col] = sum;                                   * tiles.x[k][thread_col + j];
//   }                                        __syncthreads();
//                                          }
//                                          for each i, j: if inside, Y[row * d + col] = sum[i][j];
//
// Names, the way an element is read, the pragmas of the loop, and whatever is done with the sum
// are the parent's, at the new coordinates. A tile lies in shared memory as its array does in
// global memory, so neighbouring threads read neighbours.
//
// Precondition:
// - One thread computes one element of a matrix, and depends on nothing else of the thread than
//   the element's coordinates, however these are made of blockIdx and threadIdx
//   (analysis/plain_reduction.hpp). The threads store each element once: evaluated over whole
//   launches of several sizes.
// - The first thing that it does is a loop that adds up products of something that depends on the
//   row and something that depends on the column. A short sum is left alone: fusing the kernel
//   that has one is worth more (fuse_epilogue).
// - Both files compute the same polynomials of their inputs (analysis/meaning.hpp), shown for one
//   of the shapes; they differ by constants alone.
// Every element stays one sum with k ascending, to which zeros are added at its end.
//
// Expected gain: an input is read once per tile instead of once per element, and a value in shared
// memory serves several products. A matrix with few rows gets tiles as high as itself, narrow ones
// so that there are enough blocks, and with many k in flight.
#include <algorithm>
#include <bit>

#include "mutators/analysis/meaning.hpp"
#include "mutators/edited.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/target.hpp"
#include "mutators/tiling.hpp"

namespace evo {
namespace {

constexpr std::int64_t few = 32; // rows that one tile holds, or terms that are no long sum

/// The shapes to start from, the cheapest to evaluate first; reshape_tile walks on from there.
std::vector<TileShape> shapes(const PlainReduction& reduction) {
  const auto rows = reduction.rows.constant;
  if (!rows || *rows > few) {
    return {{.block_m = 32, .block_n = 32, .block_k = 8, .thread_m = 2, .thread_n = 2},
            {.block_m = 64, .block_n = 64, .block_k = 8, .thread_m = 4, .thread_n = 4},
            {.block_m = 128, .block_n = 128, .block_k = 8, .thread_m = 8, .thread_n = 8}};
  }
  const int all = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(*rows)));
  return {{.block_m = all, .block_n = 16, .block_k = 64, .thread_m = 1, .thread_n = 1},
          {.block_m = all, .block_n = 32, .block_k = 64, .thread_m = 2, .thread_n = 2},
          {.block_m = all, .block_n = 32, .block_k = 128, .thread_m = 2, .thread_n = 2},
          {.block_m = all, .block_n = 64, .block_k = 64, .thread_m = 2, .thread_n = 4}};
}

bool fits(const TileShape& shape, const Target& target) {
  return shape.block_m % shape.thread_m == 0 && shape.threads() % warp_size == 0 &&
         shape.threads() <= target.threads_per_block &&
         shape.shared_bytes() <= target.shared_bytes_per_block;
}

std::string label(const PlainReduction& reduction, const TileShape& shape) {
  const auto number = [](int value) { return std::to_string(value); };
  return reduction.loop.name + " tile " + number(shape.block_m) + "x" + number(shape.block_n) +
         "x" + number(shape.block_k) + ", " + number(shape.thread_m) + "x" +
         number(shape.thread_n) + " per thread";
}

bool is_long(const Kernel& kernel, const PlainReduction& reduction) {
  return trip_count(kernel, reduction.loop.counted).value_or(few + 1) > few;
}

bool tiling_keeps_meaning(const Kernel& kernel, const std::vector<Edit>& edits) {
  const auto after = edited(kernel, edits);
  return after && same_meaning(kernel, *after, telling_dims(*after));
}

class TileReduction : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "tile_reduction",
        .summary = "tiles a plain reduction through shared memory and registers: inputs are read "
                   "once per tile instead of once per element",
        .before = "for (k) sum += W[row * d + k] * X[k * d + col];",
        .after = "for (k0) { tiles = ...; for (k, i, j) sum[i][j] += tiles.w[..] * tiles.x[..]; }",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    for (const PlainReduction& reduction : find_plain_reductions(kernel)) {
      std::vector<Rewrite> family;
      for (const TileShape& shape : shapes(reduction)) {
        auto edits = is_long(kernel, reduction) && fits(shape, kernel.target())
                         ? tile(kernel, reduction, shape)
                         : std::nullopt;
        if (edits) {
          family.push_back({label(reduction, shape), std::move(*edits)});
        }
      }
      if (!family.empty() && tiling_keeps_meaning(kernel, family.front().edits)) {
        std::ranges::move(family, std::back_inserter(result));
      }
    }
    return result;
  }
};

} // namespace

const Mutator& tile_reduction() {
  static const TileReduction mutator;
  return mutator;
}

} // namespace evo
