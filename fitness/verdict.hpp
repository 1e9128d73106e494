// What became of a candidate. A failure is a value, never an exception and never a number.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace evo {

enum class Verdict {
  Ok,
  Duplicate,
  NoParse,
  RefusedByPolicy,
  OverLimits,
  NoBuild,
  BuildTimeout,
  Crash,
  Hang,
  LaunchError,
  WrongAnswer,
  TouchedInput,
  OutOfBounds,
  UnwrittenOutput,
  NonDeterministic,
  Race,
  Suspicious,
  Fault,      // evo's own, a mutator that broke its promise say; nothing is known of the candidate
  Unrecorded, // it was to be looked up, and is not there
};

inline constexpr std::array all_verdicts{Verdict::Ok,
                                         Verdict::Duplicate,
                                         Verdict::NoParse,
                                         Verdict::RefusedByPolicy,
                                         Verdict::OverLimits,
                                         Verdict::NoBuild,
                                         Verdict::BuildTimeout,
                                         Verdict::Crash,
                                         Verdict::Hang,
                                         Verdict::LaunchError,
                                         Verdict::WrongAnswer,
                                         Verdict::TouchedInput,
                                         Verdict::OutOfBounds,
                                         Verdict::UnwrittenOutput,
                                         Verdict::NonDeterministic,
                                         Verdict::Race,
                                         Verdict::Suspicious,
                                         Verdict::Fault,
                                         Verdict::Unrecorded};

/// "wrong answer": as logs, snapshots and the protocol write it.
std::string_view to_string(Verdict verdict);
std::optional<Verdict> verdict_from(std::string_view text);

/// "wrong answer: 3 of 12 elements ...", or "ok".
std::string verdict_line(Verdict verdict, const std::string& detail);

} // namespace evo
