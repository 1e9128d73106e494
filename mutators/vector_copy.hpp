// Several consecutive elements per step of a loop that copies, by one wide access.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mutators/analysis/copy_loop.hpp"
#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace evo {

/// Lets `copy` move `width` (2 or 4) elements per step. nullopt where a group of elements cannot be
/// proved to be consecutive in global or shared memory, aligned in shared memory, and in whole
/// groups; and where it matters which thread moves an element.
std::optional<std::vector<Edit>> vectorised(const Kernel& kernel, const CopyLoop& copy, int width);

/// The same for a copy in two halves, from global memory to registers and from these to shared
/// memory, which deal out elements to threads alike.
std::optional<std::vector<Edit>> vectorised(const Kernel& kernel, const CopyLoop& fetch,
                                            const CopyLoop& store, int width);

} // namespace evo
