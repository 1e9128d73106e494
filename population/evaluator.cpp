#include "population/evaluator.hpp"

#include <utility>

namespace evo {

Fitness verified(Fitness fitness, VerifyResponse response) {
  if (response.verdict != Verdict::Ok) {
    const bool measured = fitness.measured;
    fitness = {.verdict = response.verdict, .detail = std::move(response.detail), .sizes = {}};
    fitness.measured = measured;
  }
  fitness.verification = std::move(response.verification);
  return fitness;
}

} // namespace evo
