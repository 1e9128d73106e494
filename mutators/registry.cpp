#include "mutators/registry.hpp"

#include <algorithm>

namespace evo {

const std::vector<const Mutator*>& mutators() {
  static const std::vector<const Mutator*> all{
      // clang-format off: one line each
      &unroll_loop(),
      &fuse_epilogue(),
      &reshape_tile(),
      &double_buffer(),
      &relayout_tile(),
      &launch_bounds(),
      &load_fragments(),
      &vectorise_access(),
      &fold_low_rank(),
      &remap_threads(),
      &tile_reduction(),
      &pipeline_copies(),
      &relayout_matrix(),
      &peel_edges(),
      &rasterise_blocks(),
      &tensorise(),
      &slice_operands(),
      &split_operands(),
      &promote_sums(),
      &cache_hints(),
      &extend_reduction(),
      &split_tail(),
      &stage_epilogue(),
      &persist_blocks(),
      &prefetch_fragments(),
      &sum_through_output(),
      &inline_producer(),
      // end of mutators
      // clang-format on
  };
  return all;
}

const Mutator* find_mutator(std::string_view name, const std::vector<const Mutator*>& among) {
  const auto found =
      std::ranges::find(among, name, [](const Mutator* m) { return m->about().name; });
  return found == among.end() ? nullptr : *found;
}

} // namespace evo
