// What a kernel file may not do, however well it computes.
#pragma once

#include <optional>
#include <string>

#include "mutators/kernel.hpp"

namespace evo {

/// One sentence that says where the file breaks the policy (docs/policy.md), how, and what to do;
/// nullopt for a file that keeps it. Judges syntax trees: the kernel's own and those that the
/// host's compilation and every other architecture named by an #if would see. 5 ms each.
std::optional<std::string> policy_violation(const Kernel& kernel);

} // namespace evo
