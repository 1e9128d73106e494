#include "population/remembering_evaluator.hpp"

#include <algorithm>
#include <utility>

namespace evo {
namespace {

constexpr double between_sessions = 1.15; // of measured speed-ups: what may be noise

bool may_beat(const Fitness& known, double speedup) {
  return known.ok() && known.speedup * (known.measured ? between_sessions : 1) > speedup;
}

/// The known times as they would be beside the incumbent's reference.
Fitness in_units_of(const Incumbent* incumbent, Fitness known) {
  if (incumbent == nullptr || incumbent->fitness.sizes.size() != known.sizes.size()) {
    return known;
  }
  for (std::size_t i = 0; i < known.sizes.size(); ++i) {
    const double now_ms = incumbent->fitness.sizes[i].reference_ms;
    SizeResult& size = known.sizes[i];
    size.median_ms *= now_ms / size.reference_ms;
    size.spread_ms *= now_ms / size.reference_ms;
    size.reference_ms = now_ms;
  }
  return known;
}

} // namespace

bool is_final(Verdict verdict) {
  switch (verdict) {
  case Verdict::BuildTimeout:
  case Verdict::Crash:
  case Verdict::Hang:
  case Verdict::LaunchError:
  case Verdict::Fault:
  case Verdict::Unrecorded:
    return false;
  default:
    return true;
  }
}

RememberingEvaluator::RememberingEvaluator(FitnessEvaluator& evaluator, JudgedBefore memory)
    : evaluator_(evaluator), before_(std::move(memory)) {
  const auto consider = [&](const Individual& individual) {
    best_known_ = std::max(best_known_, individual.fitness.speedup);
  };
  if (!before_.fresh) {
    std::ranges::for_each(before_.store.fittest(1), consider);
  }
  for (const auto& [id, individual] : before_.given) {
    consider(individual);
  }
}

/// What may come to lead is built; nothing else that is known.
std::variant<Built, BuildFailure>
RememberingEvaluator::build(const Genome& genome, std::stop_token stop, Gates gates) const {
  const auto individual = gates == Gates::All ? known(genome) : std::nullopt;
  if (!individual || may_beat(individual->fitness, best_known_)) {
    return evaluator_.build(genome, std::move(stop), gates);
  }
  if (!individual->built) {
    return BuildFailure{individual->fitness.verdict, individual->fitness.detail, individual->known};
  }
  return Built{.library = {},
               .binary_digest = individual->binary,
               .kernels = individual->kernels,
               .probe_sizes = {}};
}

std::chrono::milliseconds RememberingEvaluator::deadline(const Incumbent* incumbent) const {
  return evaluator_.deadline(incumbent);
}

Judgement RememberingEvaluator::judge(const Genome& genome, const Built& built,
                                      const Incumbent* incumbent, std::stop_token stop) {
  const auto individual = known(genome);
  if (individual &&
      (!individual->fitness.ok() ||
       (incumbent != nullptr && !may_beat(individual->fitness, incumbent->fitness.speedup)))) {
    return {.fitness = in_units_of(incumbent, individual->fitness),
            .incumbent = {},
            .confirmed = false,
            .known = individual->known,
            .built = {}};
  }
  Judgement judgement = judge_now(genome, built, incumbent, std::move(stop));
  if (judgement.incumbent && !judgement.incumbent->ok()) {
    before_.store.forget(incumbent->id);
  }
  return judgement;
}

/// Of what came without a library because it was known, the build is done now.
Judgement RememberingEvaluator::judge_now(const Genome& genome, const Built& built,
                                          const Incumbent* incumbent, std::stop_token stop) {
  if (!built.library.empty() || !known(genome)) {
    return evaluator_.judge(genome, built, incumbent, std::move(stop));
  }
  auto result = evaluator_.build(genome, stop);
  if (auto* failure = std::get_if<BuildFailure>(&result)) {
    return {.fitness = failed(failure->verdict, std::move(failure->detail)), .incumbent = {}};
  }
  Judgement judgement = evaluator_.judge(genome, std::get<Built>(result), incumbent, stop);
  judgement.built = std::move(std::get<Built>(result));
  return judgement;
}

VerifyResponse RememberingEvaluator::verify(const Genome& genome, const Built& built, bool full,
                                            std::stop_token stop) {
  return evaluator_.verify(genome, built, full, std::move(stop));
}

std::optional<Individual> RememberingEvaluator::known(const Genome& genome) const {
  const auto final = [](std::optional<Individual> found) {
    return found && is_final(found->fitness.verdict) ? std::move(found) : std::nullopt;
  };
  const bool named_by_user = genome.trail.empty();
  if (named_by_user) {
    return std::nullopt;
  }
  if (const auto given = before_.given.find(genome.id); given != before_.given.end()) {
    return final(given->second);
  }
  auto found = before_.fresh ? std::nullopt : final(before_.store.find(genome.id));
  if (found) {
    found->known = true;
  }
  return found;
}

} // namespace evo
