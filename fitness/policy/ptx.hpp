// Inline PTX, the one part of a kernel that the syntax tree holds as text.
#pragma once

#include <optional>
#include <string_view>

#include "fitness/policy/finding.hpp"

namespace evo::policy {

/// Refuses what is not a computation of the thread: clocks and other registers that tell how the
/// kernel is being run, calls, traps, waiting by time, and declarations other than registers.
std::optional<Finding> ptx_violation(std::string_view assembly);

} // namespace evo::policy
