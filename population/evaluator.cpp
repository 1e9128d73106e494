#include "population/evaluator.hpp"

#include <utility>

namespace evo {

Fitness verified(Fitness fitness, VerifyResponse response) {
  if (response.verdict != Verdict::Ok) {
    const double frail = response.verdict == Verdict::WrongAnswer ? fitness.speedup : 0;
    fitness = failed(response.verdict, std::move(response.detail), fitness.measured);
    fitness.frail_speedup = frail;
  }
  fitness.verification = std::move(response.verification);
  return fitness;
}

bool makes_an_elite(const Judgement& judgement, const Incumbent* incumbent) {
  const Fitness* best = judgement.incumbent    ? &*judgement.incumbent
                        : incumbent != nullptr ? &incumbent->fitness
                                               : nullptr;
  return judgement.fitness.ok() && judgement.confirmed &&
         (best == nullptr || !best->ok() || judgement.fitness.speedup > best->speedup);
}

} // namespace evo
