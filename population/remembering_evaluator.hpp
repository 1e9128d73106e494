// No candidate is judged twice, in whatever run it was judged.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "population/evaluator.hpp"
#include "population/individual.hpp"
#include "population/store.hpp"

namespace evo {

/// Whether a verdict tells of the kernel itself, and would be given again: not so after a time-out,
/// a crash or a failed launch, which hazards (fitness/hazards.hpp) are there for.
bool is_final(Verdict verdict);

/// What was judged before.
struct JudgedBefore {
  Store& store;
  bool fresh = false;                           // nothing is learnt from the store
  std::map<std::string, Individual> given = {}; // by id: this run's, before it was interrupted
};

/// Answers what memory knows, and asks another evaluator for the rest. What the user
/// names, a seed say, is always judged, and so is whatever may be faster than the incumbent:
/// nothing becomes the best of a run by times of another.
///
/// Two sessions' clocks differ, but hardly the ratio to a reference timed in the same session: so
/// speed-ups are compared, a candidate known as up to 15 % slower than the incumbent is timed
/// again, and known times are told in units of this run's reference.
class RememberingEvaluator : public FitnessEvaluator {
public:
  RememberingEvaluator(FitnessEvaluator& evaluator, JudgedBefore memory);

  std::variant<Built, BuildFailure> build(const Genome& genome, std::stop_token stop,
                                          Gates gates) const override;
  std::chrono::milliseconds deadline(const Incumbent* incumbent) const override;
  Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                  std::stop_token stop) override;
  VerifyResponse verify(const Genome& genome, const Built& built, bool full,
                        std::stop_token stop) override;

private:
  Judgement judge_now(const Genome& genome, const Built& built, const Incumbent* incumbent,
                      std::stop_token stop);
  std::optional<Individual> known(const Genome& genome) const;

  FitnessEvaluator& evaluator_;
  JudgedBefore before_;
  double best_known_ = 0; // speed-up, when the run began
};

} // namespace evo
