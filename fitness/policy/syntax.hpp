// The rules that are about one compilation's syntax tree.
#pragma once

#include <optional>
#include <string>

#include "mutators/kernel.hpp"

namespace evo::policy {

/// The sentence of the first violation in the file's own declarations, in source order: calls,
/// state, streams, pointers as numbers, attributes, assembly.
std::optional<std::string> syntax_violation(const Kernel& kernel);

} // namespace evo::policy
