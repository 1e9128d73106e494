#include "fitness/verdict.hpp"

#include "fitness/named.hpp"

namespace evo {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
  case Verdict::Ok:
    return "ok";
  case Verdict::Duplicate:
    return "duplicate";
  case Verdict::NoParse:
    return "no parse";
  case Verdict::RefusedByPolicy:
    return "refused by policy";
  case Verdict::OverLimits:
    return "over limits";
  case Verdict::NoBuild:
    return "no build";
  case Verdict::BuildTimeout:
    return "build timeout";
  case Verdict::Crash:
    return "crash";
  case Verdict::Hang:
    return "hang";
  case Verdict::LaunchError:
    return "launch error";
  case Verdict::WrongAnswer:
    return "wrong answer";
  case Verdict::TouchedInput:
    return "touched input";
  case Verdict::OutOfBounds:
    return "out of bounds";
  case Verdict::UnwrittenOutput:
    return "unwritten output";
  case Verdict::NonDeterministic:
    return "non-deterministic";
  case Verdict::Race:
    return "race";
  case Verdict::Suspicious:
    return "suspicious";
  case Verdict::Fault:
    return "fault";
  case Verdict::Unrecorded:
    return "unrecorded";
  }
  return "unknown";
}

std::optional<Verdict> verdict_from(std::string_view text) {
  return find_named(all_verdicts, text);
}

std::string verdict_line(Verdict verdict, const std::string& detail) {
  return std::string(to_string(verdict)) + (detail.empty() ? "" : ": " + detail);
}

} // namespace evo
