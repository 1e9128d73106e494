// A kernel after a rewrite, for a mutator that proves what it proposes.
#pragma once

#include <optional>
#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace evo {

/// The kernel after `edits`, parsed for the same target; nullopt where it does not compile.
std::optional<Kernel> edited(const Kernel& kernel, const std::vector<Edit>& edits);

/// Whether the kernel after `edits` leaves the same in its outputs (analysis/meaning.hpp), without
/// a race in its first blocks, at sizes that take every path.
bool computes_the_same(const Kernel& kernel, const std::vector<Edit>& edits);

} // namespace evo
