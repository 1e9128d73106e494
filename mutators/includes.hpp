// Headers that a rewrite needs.
#pragma once

#include <optional>
#include <string>

#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace evo {

/// Includes <header> before the file's first #include; nullopt where the file includes it already.
std::optional<Edit> include(const Kernel& kernel, const std::string& header);

} // namespace evo
