#include "population/hazard_guard.hpp"

#include <utility>

#include <fmt/core.h>

#include "mutators/rewrite.hpp"

namespace evo {

HazardGuard::HazardGuard(std::unique_ptr<FitnessEvaluator> evaluator,
                         std::unique_ptr<Hazards> hazards, std::string machine,
                         std::string build_line)
    : Guard(std::move(evaluator)), hazards_(std::move(hazards)), machine_(std::move(machine)),
      build_line_(std::move(build_line)) {}

Judgement HazardGuard::judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                             std::stop_token stop) {
  // Flags and nvcc show in the binary.
  const std::string key = digest(built.binary_digest + "\n" + machine_);
  const std::chrono::milliseconds time = deadline(incumbent);
  const bool named_by_user = genome.trail.empty();
  if (const auto hazard = hazards_->find(key, time); hazard && !named_by_user) {
    return {.fitness = failed(
                hazard->verdict,
                fmt::format("known from an earlier run, and not run again: {}", hazard->detail)),
            .incumbent = {}};
  }
  hazards_->begin({key, genome.source, build_line_, time});
  Judgement judgement = inner().judge(genome, built, incumbent, stop);
  if (stop.stop_requested()) {
    hazards_->forget();
  } else {
    hazards_->end(judgement.fitness);
  }
  return judgement;
}

} // namespace evo
