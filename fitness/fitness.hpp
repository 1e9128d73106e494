// The judge's answer about one candidate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fitness/accuracy.hpp"
#include "fitness/verdict.hpp"

namespace evo {

/// One size of the problem.
struct SizeResult {
  int size = 0;                 // value of the varying dim
  double median_ms = 0;         // the candidate
  double spread_ms = 0;         // interquartile range over its calls; 0 when estimated
  double reference_ms = 0;      // PyTorch in the same run, or the model's cuBLAS-like estimate
  int calls = 0;                // timed calls behind median_ms; 0 when estimated
  double max_abs_error = 0;     // against the reference as found
  double relative_l2_error = 0; // against fp64
  double violations = 0;        // elements outside |y - ref| <= atol + rtol |ref|
};

/// `sizes` and `speedup` are present exactly when the verdict is Ok.
struct Fitness {
  Verdict verdict = Verdict::Crash;
  std::string detail;    // one sentence for a failure
  bool measured = false; // false: the times are the analytic model's estimate
  std::vector<SizeResult> sizes;
  double speedup = 0; // geometric mean over sizes of reference_ms / median_ms
  /// Of a wrong answer: its speed-up where it is right about the inputs that are timed and wrong in
  /// a case that its verification went through. It is no result, but what comes of it may be right.
  double frail_speedup = 0;
  /// Of contenders, and of what is checked by hand.
  std::optional<Verification> verification = std::nullopt;

  bool ok() const { return verdict == Verdict::Ok; }
};

/// What became of a candidate that is not Ok.
Fitness failed(Verdict verdict, std::string detail, bool measured = false);

/// The candidate's median_ms at each size.
std::vector<double> medians(const Fitness& fitness);

/// Geometric mean of reference_ms / median_ms; 0 for no sizes.
double geometric_mean_speedup(const std::vector<SizeResult>& sizes);

} // namespace evo
