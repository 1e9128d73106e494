// How right a kernel is, case by case.
#pragma once

#include <string>

#include "fitness/accuracy.hpp"

namespace evo {

/// Markdown, a row per case and size: the scale of the output; the reference's rms error relative
/// to it and the ideal's largest error, which tell whether the tolerance decides; the kernel's
/// largest error relative to the tolerance, its rms error relative to the reference's own, and the
/// elements beyond the tolerance. What the level does not bind is in brackets.
std::string accuracy_table(const Verification& verification);

/// "16 cases of level default at 5 sizes, 512 calls, scale headroom 12"
std::string describe(const Verification& verification);

/// The table and the sum.
std::string accuracy_report(const Verification& verification);

} // namespace evo
