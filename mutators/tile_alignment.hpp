// Where shared arrays begin.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mutators/analysis/accesses.hpp"
#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace clang {
class ArraySubscriptExpr;
} // namespace clang

namespace evo {

/// Makes the shared array that `place` is an element of begin at a multiple of `bytes`, by alignas
/// on what declares it. Empty where it says so already; nullopt where the array is reached through
/// a pointer, lies behind something else in dynamic memory, or would move in its struct.
std::optional<std::vector<Edit>>
align_tile(const Kernel& kernel, const clang::ArraySubscriptExpr& place, std::int64_t bytes);

} // namespace evo
