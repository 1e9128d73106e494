// One run of a candidate on the card of which everything is checked.
#pragma once

#include <vector>

#include "fitness/candidate.hpp"
#include "fitness/guarded_buffer.hpp"
#include "fitness/oracle.hpp"

namespace evo {

struct Contents {
  Tensors inputs;
  at::Tensor reference;
  at::Tensor exact; // float64, of the first contents only
};

/// Copies `values` into the buffers, whose guard zones some other call may have damaged.
void load(const std::vector<GuardedBuffer>& buffers, const Tensors& values);
std::vector<const float*> pointers_of(const std::vector<GuardedBuffer>& buffers);

/// One size of the problem on the card.
struct Prepared {
  int size = 0;
  std::vector<int> dims;
  std::vector<std::int64_t> output_shape;
  std::vector<GuardedBuffer> live; // the inputs of candidates: the pointers stay, contents change
  std::vector<Contents> contents;
  double reference_ms = 0;

  std::vector<const float*> pointers() const { return pointers_of(live); }
  void load(const Contents& chosen) const { evo::load(live, chosen.inputs); }
  /// Bit by bit: a NaN differs from no NaN.
  bool holds(const Contents& chosen) const;
};

/// The buffers of one call, between guard zones.
struct Arguments {
  std::vector<GuardedBuffer> inputs;
  GuardedBuffer output;
  GuardedBuffer workspace;
};

/// All poisoned, and allocated in an order that depends on `chance`: the pointers of similar calls
/// change places. CandidateFailure (OverLimits) for a workspace that does not fit.
Arguments shuffled_arguments(const Oracle& oracle, const Candidate& candidate, int size,
                             std::uint64_t chance);

struct Outcome {
  at::Tensor output;
  bool as_before = false; // bit by bit what was expected
};

/// Runs the candidate on `inputs`; CandidateFailure unless it writes all of its output and nothing
/// else. `before`: an earlier output for the same inputs, or undefined. Waits for the device once
/// after the call.
Outcome checked_call(const Oracle& oracle, const Candidate& candidate, int size,
                     const Arguments& arguments, const Tensors& inputs,
                     const at::Tensor& before = {});

/// A checked call whose output is right; CandidateFailure for any other.
Accuracy check(const Oracle& oracle, const Candidate& candidate, const Prepared& prepared,
               const Contents& contents);

/// A checked call on small integers, right to the last bit.
void check_exactly(const Oracle& oracle, const Candidate& candidate, const Prepared& probe);

/// CandidateFailure unless every element of `output` is written and right.
Accuracy check_output(const Oracle& oracle, const at::Tensor& output, const Prepared& prepared,
                      const Contents& contents);

} // namespace evo
