#include "population/recorded_evaluator.hpp"

#include <utility>

namespace evo {

std::variant<Built, BuildFailure> RecordedEvaluator::build(const Genome& genome, std::stop_token,
                                                           Gates) const {
  const auto found = recorded_.verdicts.find(genome.id);
  if (found == recorded_.verdicts.end()) {
    return BuildFailure{Verdict::Unrecorded, "the file of verdicts has none for it"};
  }
  const Individual& individual = found->second.individual;
  if (!individual.built) {
    return BuildFailure{individual.fitness.verdict, individual.fitness.detail};
  }
  return Built{.library = {},
               .binary_digest = individual.binary,
               .kernels = individual.kernels,
               .probe_sizes = {}};
}

Judgement RecordedEvaluator::judge(const Genome& genome, const Built&, const Incumbent*,
                                   std::stop_token) {
  return {.fitness = recorded_.verdicts.at(genome.id).individual.fitness, .incumbent = {}};
}

VerifyResponse RecordedEvaluator::verify(const Genome& genome, const Built&, bool,
                                         std::stop_token) {
  const Fitness& fitness = recorded_.verdicts.at(genome.id).individual.fitness;
  return {.verdict = fitness.verdict,
          .detail = fitness.detail,
          .verification = fitness.verification.value_or(Verification{})};
}

} // namespace evo
