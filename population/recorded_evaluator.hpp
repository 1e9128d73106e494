// Verdicts from a file instead of a judge: runs that repeat to the last byte, without a compiler or
// a card.
#pragma once

#include "population/evaluator.hpp"
#include "population/journal.hpp"

namespace evo {

/// Gives what a journal says of a source, and Unrecorded for a source that it does not know.
class RecordedEvaluator : public FitnessEvaluator {
public:
  explicit RecordedEvaluator(Recorded recorded) : recorded_(std::move(recorded)) {}

  std::variant<Built, BuildFailure> build(const Genome& genome, std::stop_token stop,
                                          Gates gates) const override;
  Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                  std::stop_token stop) override;
  VerifyResponse verify(const Genome& genome, const Built& built, bool full,
                        std::stop_token stop) override;

private:
  Recorded recorded_;
};

} // namespace evo
