// Whether a loop runs at all.
#pragma once

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class FunctionDecl;
} // namespace clang

namespace evo {

/// Whether the loop has a first iteration in every block of `function` that is launched. Proved for
/// constant bounds, and for `0 < size` where every launch passes one of the entry's sizes and
/// starts no block when it is zero. (Sizes are never negative.)
bool always_has_first_iteration(const Kernel& kernel, const clang::FunctionDecl& function,
                                const CountedLoop& loop);

} // namespace evo
