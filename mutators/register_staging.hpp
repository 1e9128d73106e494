// Splits loads from global into shared memory in two: global memory to registers, and registers to
// shared memory, so that something else can happen between.
//
//   for (int i = threadIdx.x; i < M * K; i += threads) {
//     const int row = i / K;
//     const int k = i % K;
//     tile[row][k] = row < d ? W[row * d + k] : 0.0f;
//   }
//
// becomes
//
//   constexpr int gemm_tile_loads = M * K / threads;      // constants
//   static_assert(M * K % threads == 0);
//   float tile_next[gemm_tile_loads];                     // registers
//   #pragma unroll                                        // fetch
//   for (int step = 0; step < gemm_tile_loads; ++step) {
//     const int i = threadIdx.x + step * threads;
//     const int row = i / K;
//     const int k = i % K;
//     tile_next[step] = row < d ? W[row * d + k] : 0.0f;
//   }
//   #pragma unroll                                        // store
//   for (int step = 0; step < gemm_tile_loads; ++step) {
//     const int i = threadIdx.x + step * threads;
//     const int row = i / K;
//     const int k = i % K;
//     tile[row][k] = tile_next[step];
//   }
//
// Every loop gets a constant trip count and is unrolled, for an array indexed by anything but
// constants would not stay in registers. Where the count does not divide, `if (i < M * K)` guards
// the body. Loops with constant bounds stay as they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mutators/analysis/stage_model.hpp"
#include "mutators/names.hpp"
#include "mutators/rewrite.hpp"

namespace evo {

struct RegisterStaging {
  std::string constants; // for namespace scope, before the kernel
  std::string registers;
  std::string fetch;
  std::string store;
};

/// Splits the load parts of `stages`. `fetch_edits` and `store_edits` apply to the text that each
/// half is printed from. nullopt unless the parts consist of definitions, branches, counted loops
/// and assignments, every assignment to shared memory is a statement of its own with `=`, and each
/// loop's trip count is bounded by a constant.
std::optional<RegisterStaging> split_loads(const Kernel& kernel, const Stages& stages,
                                           const std::vector<const StagePart*>& loads,
                                           const std::vector<Edit>& fetch_edits,
                                           const std::vector<Edit>& store_edits, Names& names);

/// The tiles that the loads fill by more than copying (copy_source.hpp), in the order of
/// stages.tiles; nullopt as for split_loads.
std::optional<std::vector<Memory>> computed_tiles(const Kernel& kernel, const Stages& stages,
                                                  const std::vector<const StagePart*>& loads);

/// The loads of some tiles as asynchronous copies, and those of the others through registers:
/// twice.
struct AsyncLoads {
  std::string constants;       // for namespace scope, before the kernel
  std::string local_constants; // for the kernel, before everything else
  std::string first_copies;
  std::string first_assignments; // from global to shared memory; empty without such tiles
  std::string next_copies;
  std::string registers; // these and their halves empty too
  std::string next_fetch;
  std::string next_store;
};

/// Splits the loads by their tiles. Where they are copied, each assignment becomes asynchronous
/// copies of an element or, where it moves several and may do so by one access, of these. The two
/// sets of edits apply to the text that the first and the next loads are printed from. nullopt as
/// for split_loads, and where one of computed_tiles is not `in_registers`.
std::optional<AsyncLoads> copy_loads(const Kernel& kernel, const Stages& stages,
                                     const std::vector<const StagePart*>& loads,
                                     const std::vector<Memory>& in_registers,
                                     const std::vector<Edit>& first_edits,
                                     const std::vector<Edit>& next_edits, Names& names);

} // namespace evo
