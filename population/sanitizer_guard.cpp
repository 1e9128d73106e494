#include "population/sanitizer_guard.hpp"

#include <utility>

#include <fmt/core.h>

namespace evo {
SanitizerGuard::SanitizerGuard(std::unique_ptr<FitnessEvaluator> evaluator,
                               std::unique_ptr<Sanitizer> sanitizer)
    : Guard(std::move(evaluator)), sanitizer_(std::move(sanitizer)) {}

Judgement SanitizerGuard::judge(const Genome& genome, const Built& built,
                                const Incumbent* incumbent, std::stop_token stop) {
  Judgement judgement = inner().judge(genome, built, incumbent, stop);
  if (makes_an_elite(judgement, incumbent)) {
    if (auto finding = check(built, stop)) {
      judgement.fitness = failed(finding->verdict, std::move(finding->detail));
    }
  }
  return judgement;
}

std::optional<SanitizerFinding> SanitizerGuard::check(const Built& built, std::stop_token stop) {
  try {
    return sanitizer_ ? sanitizer_->check(built.library, stop) : std::nullopt;
  } catch (const SanitizerFault& fault) {
    if (!stop.stop_requested()) {
      fmt::print(
          stderr,
          "evo: compute-sanitizer does not work here, so elites are not checked with it: {}\n",
          fault.what());
      sanitizer_.reset();
    }
    return std::nullopt;
  }
}

} // namespace evo
