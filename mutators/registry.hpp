// One line per mutator: the function in its .cpp that returns the only instance.
#pragma once

#include "mutators/mutator.hpp"

namespace evo {

const Mutator& unroll_loop();
const Mutator& fuse_epilogue();
const Mutator& reshape_tile();
const Mutator& double_buffer();
const Mutator& relayout_tile();
const Mutator& launch_bounds();
const Mutator& load_fragments();
const Mutator& vectorise_access();
const Mutator& fold_low_rank();
const Mutator& remap_threads();
const Mutator& tile_reduction();
const Mutator& pipeline_copies();
const Mutator& relayout_matrix();
const Mutator& peel_edges();
const Mutator& rasterise_blocks();
const Mutator& slice_operands();
const Mutator& split_operands();
const Mutator& tensorise();
const Mutator& cache_hints();
const Mutator& extend_reduction();
const Mutator& split_tail();
const Mutator& stage_epilogue();
const Mutator& persist_blocks();
const Mutator& promote_sums();
const Mutator& prefetch_fragments();
const Mutator& sum_through_output();
const Mutator& inline_producer();
// end of mutators

} // namespace evo
