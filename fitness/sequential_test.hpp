// When enough blocks have been timed to say which of two kernels is faster.
#pragma once

#include <vector>

namespace evo {

enum class Decision { Undecided, Faster, NotFaster };

/// How many times as fast, with the confidence interval that holds at every look at once.
struct Estimate {
  double ratio = 1;
  double low = 0;
  double high = 0;
};

/// Student's t over the paired log ratios of blocks, looked at after every `look_step` of them, up
/// to `most_blocks`. Each look has the same nominal level, Pocock's for that many looks, so that in
/// all of them together a kernel as fast as the other is called different in at most 5 % of the
/// tests, and faster in half of those.
class SequentialTest {
public:
  static constexpr int look_step = 4;
  static constexpr int most_blocks = 24;
  static constexpr double least_gain = 1.003; // less is not worth more blocks

  /// One block: the logarithm of the incumbent's time over the challenger's.
  void add(double log_ratio) { log_ratios_.push_back(log_ratio); }

  int blocks() const { return static_cast<int>(log_ratios_.size()); }

  /// Undecided between two looks. The challenger is Faster when the whole interval is above 1, and
  /// NotFaster when it is below `least_gain`, or when there are no blocks left.
  Decision decision() const;

  /// Of what was added; from 0 to infinity before the second block.
  Estimate estimate() const;

private:
  std::vector<double> log_ratios_;
};

/// Student's confidence interval of a fixed number of blocks; `level`: how often it may miss.
Estimate student_interval(const std::vector<double>& log_ratios, double level);

} // namespace evo
