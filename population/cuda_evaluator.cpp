#include "population/cuda_evaluator.hpp"

#include <utility>

#include "fitness/policy.hpp"
#include "population/duel.hpp"
#include "population/individual.hpp"

namespace evo {
namespace {

constexpr int screening_calls = 7;
constexpr int verified_calls = 500;
constexpr int untimed_calls = 6;       // at each size, to check and to warm up
constexpr double least_gain = 1.005;   // of a screening: less is noise, not worth confirming
constexpr double hopeless_ratio = 1.3; // times the incumbent's: three calls say enough

/// In time alone: speed-ups of two workers differ by how they timed the reference.
bool challenges(const Fitness& candidate, const Fitness& incumbent) {
  if (candidate.sizes.size() != incumbent.sizes.size()) {
    return true;
  }
  std::vector<SizeResult> over_incumbent = candidate.sizes;
  for (std::size_t i = 0; i < over_incumbent.size(); ++i) {
    over_incumbent[i].reference_ms = incumbent.sizes[i].median_ms;
  }
  return geometric_mean_speedup(over_incumbent) > least_gain;
}

/// The incumbent's times beside the challenger's, whose reference both share.
Fitness refreshed(const Fitness& challenger, const std::vector<TimedBlock>& blocks,
                  Fitness incumbent) {
  for (std::size_t i = 0; i < incumbent.sizes.size(); ++i) {
    incumbent.sizes[i].reference_ms = challenger.sizes[i].reference_ms;
  }
  return with_times(std::move(incumbent), blocks, 0);
}

} // namespace

std::variant<Kernel, BuildFailure> parse_gate(const Genome& genome, const Target& target,
                                              Gates gates) {
  auto parsed = Kernel::parse(genome.source, target);
  if (auto* error = std::get_if<ParseError>(&parsed)) {
    return BuildFailure{Verdict::NoParse, std::move(error->message)};
  }
  Kernel& kernel = std::get<Kernel>(parsed);
  if (auto violation = gates == Gates::All ? policy_violation(kernel) : std::nullopt) {
    return BuildFailure{Verdict::RefusedByPolicy, std::move(*violation)};
  }
  return std::move(kernel);
}

CudaEvaluator::CudaEvaluator(Builder builder, std::unique_ptr<WorkerClient> worker, Target target,
                             std::vector<int> sizes, Floor floor, VerifySettings verify)
    : builder_(std::move(builder)), worker_(std::move(worker)), target_(std::move(target)),
      sizes_(std::move(sizes)), floor_(std::move(floor)), verify_(std::move(verify)) {}

std::variant<Built, BuildFailure> CudaEvaluator::build(const Genome& genome, std::stop_token stop,
                                                       Gates gates) const {
  auto kernel = parse_gate(genome, target_, gates);
  if (auto* failure = std::get_if<BuildFailure>(&kernel)) {
    return std::move(*failure);
  }
  auto result = builder_.build(genome.id, genome.source, stop);
  if (auto* failure = std::get_if<BuildFailure>(&result)) {
    return std::move(*failure);
  }
  auto& artifact = std::get<Artifact>(result);
  return Built{.library = std::move(artifact.library),
               .binary_digest = std::move(artifact.cubin_digest),
               .kernels = std::move(artifact.kernels),
               .probe_sizes = {}};
}

std::chrono::milliseconds CudaEvaluator::deadline(const Incumbent* incumbent) const {
  return answer_deadline(incumbent != nullptr ? medians(incumbent->fitness) : std::vector<double>(),
                         screening_calls + untimed_calls);
}

Judgement CudaEvaluator::judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                               std::stop_token stop) {
  Judgement judgement{.fitness = screen(genome.id, built, incumbent, stop),
                      .incumbent = {},
                      .confirmed = incumbent == nullptr};
  Fitness& fitness = judgement.fitness;
  if (!fitness.ok() || (incumbent != nullptr && !challenges(fitness, incumbent->fitness))) {
    return judgement;
  }
  fitness = verified(std::move(fitness), verify(genome, built, false, stop));
  if (fitness.ok() && incumbent != nullptr) {
    challenge(judgement, genome.id, built, *incumbent, stop);
  }
  return judgement;
}

VerifyResponse CudaEvaluator::verify(const Genome& genome, const Built& built, bool full,
                                     std::stop_token stop) {
  VerifyRequest request;
  request.library = built.library.string();
  request.id = genome.id;
  request.level = verify_.level;
  request.sizes = verify_.sizes;
  request.full = full;
  request.calls = verified_calls;
  return worker_->verify(request, std::move(stop));
}

/// A challenger becomes the elite when it is the faster one by the test; an incumbent that fails
/// beside it is one no longer.
void CudaEvaluator::challenge(Judgement& judgement, const std::string& id, const Built& built,
                              const Incumbent& incumbent, std::stop_token stop) {
  Duel result = duel(*worker_, contender(incumbent.id, incumbent.built), contender(id, built),
                     sizes_, duel_deadline(incumbent.fitness, judgement.fitness), stop);
  if (result.verdict == Verdict::Ok) {
    judgement.incumbent = refreshed(judgement.fitness, result.blocks, incumbent.fitness);
    judgement.fitness =
        within_floor(with_times(std::move(judgement.fitness), result.blocks, 1), built);
    judgement.confirmed = judgement.fitness.ok() && result.decision == Decision::Faster;
    return;
  }
  Fitness failure = failed(result.verdict, std::move(result.detail), true);
  if (result.culprit == incumbent.id) {
    judgement.incumbent = std::move(failure);
    judgement.confirmed = true;
  } else {
    judgement.fitness = std::move(failure);
  }
}

/// With an incumbent, timing may give up.
Fitness CudaEvaluator::screen(const std::string& id, const Built& built, const Incumbent* incumbent,
                              std::stop_token stop) {
  JudgeRequest request;
  request.library = built.library.string();
  request.id = id;
  request.sizes = sizes_;
  request.calls = screening_calls;
  if (incumbent != nullptr) {
    request.best_ms = medians(incumbent->fitness);
    request.stop_at_ms_ratio = hopeless_ratio;
  }
  return within_floor(worker_->judge(request, deadline(incumbent), stop).fitness, built);
}

/// What is faster than the card can multiply is quarantined, whatever its results look like.
Fitness CudaEvaluator::within_floor(Fitness fitness, const Built& built) const {
  std::string complaint =
      below_floor(fitness.sizes, floor_, precision_class(products_of(built.kernels)));
  return complaint.empty() ? std::move(fitness)
                           : failed(Verdict::Suspicious, std::move(complaint), true);
}

} // namespace evo
