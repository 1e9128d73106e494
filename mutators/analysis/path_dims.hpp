// Sizes at which a kernel's blocks take every path that they can.
#pragma once

#include <cstdint>
#include <vector>

#include "mutators/kernel.hpp"

namespace evo {

/// Telling dims (meaning.hpp), and for each const bool that a launched kernel defines in its
/// outermost braces the smallest size at which it holds in one of the first blocks. Empty where
/// there is no such size within reason.
std::vector<std::vector<std::int64_t>> dims_of_all_paths(const Kernel& kernel);

} // namespace evo
