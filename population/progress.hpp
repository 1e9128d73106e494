// What a watcher of the run sees: on a terminal one line per generation that redraws itself,
// elsewhere one plain line when the generation is done.
#pragma once

#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "population/search.hpp"

namespace evo {

/// Counts of one generation.
struct Tally {
  int settled = 0;
  int built = 0;
  int known = 0; // from earlier runs
  std::map<Verdict, int> verdicts;
  Failures failures;

  void add(const Individual& individual);
};

struct ProgressState {
  int generation = 0;
  int generations = 0;
  int population = 0; // children per generation
  double best_speedup = 0;
  Tally tally;
  double busy_share = 0;                    // of the judge, since the first generation began
  std::optional<std::chrono::seconds> left; // of the run
};

/// "[######....]" of `width` cells.
std::string bar(double share, int width);

/// "generation 7/40  best 3.42x  built 28  correct 20  duplicate 3  failed 9 (build: no build 8;
/// judge: race 1)  judge busy 87 %  3:20 left", in one line.
std::string progress_line(const ProgressState& state);

struct ProgressSettings {
  int generations = 0;
  int population = 0;
  std::optional<std::chrono::seconds> budget;
  bool terminal = false;
};

class Progress {
public:
  Progress(const ProgressSettings& settings, std::FILE* stream);

  void settled(const Individual& individual);
  void generation(const Generation& generation);
  /// The run goes on after a generation of before.
  void resume(int number, const std::vector<Individual>& judged_again);
  /// Of the judge, since the first generation began.
  double busy_share() const;
  /// Seconds since the last generation ended.
  double generation_seconds() const;

private:
  using Clock = std::chrono::steady_clock;

  ProgressState state(int generation, const Tally& tally) const;
  std::optional<std::chrono::seconds> left() const;
  void draw() const;

  ProgressSettings settings_;
  std::FILE* stream_;
  mutable std::mutex mutex_;
  std::map<int, Tally> open_; // generations under way
  double best_speedup_ = 0;
  int settled_ = 0; // since the first generation began
  int resumed_after_ = 0;
  double judge_s_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point search_start_ = start_; // of the first generation, or when it was resumed
  Clock::time_point last_generation_ = start_;
};

} // namespace evo
