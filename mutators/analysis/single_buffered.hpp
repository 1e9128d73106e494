// Reduction loops that load a tile, wait, compute on it and wait again.
#pragma once

#include <optional>
#include <vector>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/stage_model.hpp"
#include "mutators/analysis/tile_storage.hpp"

namespace evo {

/// for (counter = start; counter < limit; counter += step) { load; barrier; compute; barrier }, or
/// with the second barrier first. What it points to belongs to the Stages it was found in.
struct SingleBuffered {
  CountedLoop loop;
  TileStorage storage;
  std::vector<const StagePart*> load;
  std::vector<const StagePart*> compute;
  const clang::Stmt* barrier = nullptr;
  bool begins_with_barrier = false;
};

/// nullopt unless the next tile may be loaded while this one is computed on, given room for both:
/// - start and limit do not change in the loop;
/// - the load phase writes tiles and its own variables, and reads nothing else that an iteration
///   writes, so that it depends on the counter alone;
/// - the computation writes registers only;
/// - nothing leaves an iteration early, and all effects are known.
std::optional<SingleBuffered> find_single_buffered(const Kernel& kernel, const Stages& stages);

} // namespace evo
