// A candidate timed as the outside judge times it, with everything checked outside the clock.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fitness/checked_run.hpp"
#include "fitness/timer.hpp"

namespace evo {

/// A candidate at one size and on one of its contents, which must be live while it is called. A
/// CUDA error, a changed input, an unwritten or a wrong output of any call is a CandidateFailure.
class TimedCandidate {
public:
  /// Calls it once, on a poisoned output, and keeps what it wrote as the accepted output.
  TimedCandidate(const Oracle& oracle, const Candidate& candidate, const Prepared& prepared,
                 const Contents& contents);

  /// Output and workspace are allocated anew, inside the time, where the last ones lay. Some words
  /// of that output are poisoned before, few enough to leave the L2 cache as it is and in other
  /// places each time; afterwards the output must equal the accepted one bit by bit, or else pass
  /// as it did. `before` runs last before the time.
  CallTime call(const Timer& timer, const std::function<void()>& before = [] {}) const;

private:
  at::Tensor allocate_output() const;
  void launch(const at::Tensor& output) const;
  void check_inputs() const;

  const Oracle& oracle_;
  const Candidate& candidate_;
  const Prepared& prepared_;
  const Contents& contents_;
  std::vector<const float*> pointers_;
  at::Tensor accepted_; // int32
};

/// Nothing while the clocks agree on `calls`; else it makes more of them with `time_once` and, if
/// the clocks still disagree, is a CandidateFailure (Suspicious).
void settle_doubts(std::vector<CallTime> calls, const std::function<CallTime()>& time_once,
                   const std::string& where);

/// Forgets which lines of the L2 cache an earlier candidate declared persisting.
void reset_persisting_l2();

} // namespace evo
