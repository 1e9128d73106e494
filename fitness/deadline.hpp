// How long an answer of the worker is awaited.
#pragma once

#include <chrono>
#include <vector>

namespace evo {

/// Before there is an incumbent nobody knows what a kernel of this problem takes.
inline constexpr std::chrono::milliseconds deadline_without_incumbent{60000};

/// For a request that calls a kernel `calls` times at each size, checked calls included.
/// `times_ms`: what the incumbent takes at each size, on this card; empty: there is none.
/// A multiple of that work, and a floor for what no kernel is to blame for: loading, comparing, a
/// machine that is busy with builds.
std::chrono::milliseconds answer_deadline(const std::vector<double>& times_ms, int calls);

} // namespace evo
