// The judge on trial: kernels that cheat must be caught, and good ones must pass.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "population/evaluator.hpp"
#include "population/zoo.hpp"

namespace evo {

/// One kernel through the gates, and what a right judge says.
struct Trial {
  std::string name; // a specimen's two trials share it
  std::string source;
  Verdicts expected;
  Gates gates = Gates::All;
  bool good = false; // any other verdict than the expected is a false alarm
};

struct TrialResult {
  std::string name;
  Verdicts expected;
  Gates gates = Gates::All;
  bool good = false;
  Fitness fitness;
  double seconds = 0; // building and judging

  bool right() const { return allows(expected, fitness.verdict); }
};

struct SelftestReport {
  std::vector<TrialResult> results;
  bool complete = true; // false: stopped before the last trial
  double seconds = 0;

  int specimens() const;
  int caught() const; // specimens whose every trial is right
  int good() const;
  int false_alarms() const;
  bool passed() const;
};

/// On a card: a trial per specimen, and one without the policy where something stands behind it.
/// On the model: the specimens that run there.
std::vector<Trial> specimen_trials(const std::vector<Specimen>& zoo, bool on_card);

/// Known to be right: the seeds.
std::vector<Trial> seed_trials(const std::vector<Genome>& seeds);

/// Known to be right: `count` distinct children of each seed in turn, and of their siblings, bred
/// as a search breeds. Throws std::runtime_error when the mutators do not give as many.
std::vector<Trial> bred_trials(const std::vector<Genome>& seeds, const Dialect& dialect,
                               std::size_t count);

/// Builds `jobs` at a time and judges in order, each under a name drawn at random. The best of the
/// good ones so far is the incumbent. `done` is called after each.
SelftestReport run_selftest(FitnessEvaluator& evaluator, const std::vector<Trial>& trials, int jobs,
                            const std::function<void(const TrialResult&)>& done,
                            std::stop_token stop);

/// Name, expected, got, ok or MISSED or FALSE ALARM, seconds; below a wrong one the detail.
std::string to_line(const TrialResult& result);

/// "caught 33 of 33, 0 false alarms in 12, 4:31"
std::string to_line(const SelftestReport& report);

nlohmann::json to_record(const SelftestReport& report);

} // namespace evo
