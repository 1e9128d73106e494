// Changes which outputs a thread computes, never how one is computed.
//
//   before                              after "gemm/lanes 4x8"
//   const int thread_row =              const int warp = threadIdx.x / 32;
//       threadIdx.x / threads_n * 8;    const int lane = threadIdx.x % 32;
//   const int thread_col =              const int thread =
//       threadIdx.x % threads_n * 8;        (warp / warps_n * lanes_m + lane / lanes_n) * threads_n
//       +
//                                           warp % warps_n * lanes_n + lane % lanes_n;
//                                       const int thread_row = thread / threads_n * 8;
//                                       const int thread_col = thread % threads_n * 8;
//
//   before                              after "gemm/thread_col groups 4"
//   const int thread_col =              const int thread_col =
//       threadIdx.x % threads_n * 8;        threadIdx.x % threads_n * group;
//   for (j = 0; j < 8; ++j)             for (j = 0; j < 8; ++j)
//     ... x[k][thread_col + j] ...        ... x[k][thread_col + j / group * (threads_n * group) +
//                                                j % group] ...
//
//   before                              after "gemm/thread_col groups 2 in warps"
//   const int thread_col =              const int thread_col =
//       thread % threads_n * 8;             thread % threads_n / lanes * (lanes * 8) +
//                                           thread % threads_n % lanes * group;
//   for (j = 0; j < 8; ++j)             for (j = 0; j < 8; ++j)
//     ... x[k][thread_col + j] ...        ... x[k][thread_col + j / group * (lanes * group) +
//                                                j % group] ...
//
// The first makes a warp a tile of M x N threads; applied again it changes M and N. The second
// gives a thread several groups of neighbouring elements, the groups of all threads side by side,
// in rows and columns separately; applied again it changes the size of the groups, back to one
// group too. The third lays the groups side by side in the tile of a warp alone: with lanes 8x4,
// rows in groups of 1 and columns in groups of 2 a thread has the accumulators of mma.sync.m16n8.
// Every output stays one sum in the same order, so results keep every bit.
//
// Precondition: one-dimensional blocks of a constant size.
// - lanes: definitions outside loops that divide threadIdx.x by a constant, and take the remainder.
//   Threads get other numbers there; M and N divide the block, so the numbering is a permutation.
// - groups: a definition outside loops whose values, evaluated, are equally many threads at each
//   multiple of a thread's elements; and every use of it is a sum with one element's number, of a
//   loop with constant bounds. A group is not smaller than what is accessed at once. Elements are
//   dealt out by a bijection, since groups divide a thread's elements.
// - in warps: every warp, evaluated, has equally many neighbouring positions, and not all of the
//   block's. The lanes are a constant of their own that divides the positions, so that a warp of
//   another shape leaves the outputs right, and may take its own lanes by the same rewrite.
// That the outputs do not depend on who computes them is proved once for each of the numbering, the
// rows and the columns, by running the kernel with all work moved on (ThreadExchange).
//
// Expected gain: a square warp tile reads fewer different elements of both operands per step;
// groups of 4 let neighbouring lanes read neighbouring 16 bytes, without bank conflicts.
#include <iterator>

#include "mutators/interleave.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/thread_block.hpp"
#include "mutators/warp_tile.hpp"

namespace evo {
namespace {

class RemapThreads : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "remap_threads",
        .summary = "makes a warp a tile of threads, or deals rows and columns out in groups: fewer "
                   "bytes read per step, no bank conflicts",
        .before = "const int thread_col = threadIdx.x % threads_n * 8;\n... x[k][thread_col + j] "
                  "...",
        .after = "const int thread_col = threadIdx.x % threads_n * 4;\n"
                 "... x[k][thread_col + j / 4 * (threads_n * 4) + j % 4] ...",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    ThreadExchange exchange(kernel);
    std::vector<Rewrite> result;
    for (const ThreadBlock& block : thread_blocks(kernel)) {
      for (auto* family : {warp_tiles, interleavings}) {
        std::ranges::move(family(kernel, block, exchange), std::back_inserter(result));
      }
    }
    return result;
  }
};

} // namespace

const Mutator& remap_threads() {
  static const RemapThreads mutator;
  return mutator;
}

} // namespace evo
