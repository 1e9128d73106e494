// abi.hpp and runtime.hpp, embedded so that evo runs from any folder.
#pragma once

#include <string_view>

namespace evo::cpu {

/// The head of every lowered source.
extern const std::string_view runtime_text;

} // namespace evo::cpu
