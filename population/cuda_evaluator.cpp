#include "population/cuda_evaluator.hpp"

#include <utility>

namespace evo {
namespace {

constexpr int screening_calls = 7;
constexpr int full_calls = 50;
constexpr double least_gain = 1.005;   // of a screening: less is noise, not worth confirming
constexpr double hopeless_ratio = 1.3; // times the incumbent's: three calls say enough
constexpr double close_call = 1.1;     // speed-ups nearer than this are compared afresh

std::vector<double> medians(const Fitness& fitness) {
  std::vector<double> result;
  for (const SizeResult& size : fitness.sizes) {
    result.push_back(size.median_ms);
  }
  return result;
}

} // namespace

std::variant<Kernel, BuildFailure> parse_gate(const Genome& genome, const Target& target,
                                              Gates /*gates*/) {
  auto parsed = Kernel::parse(genome.source, target);
  if (auto* error = std::get_if<ParseError>(&parsed)) {
    return BuildFailure{Verdict::NoParse, std::move(error->message)};
  }
  return std::move(std::get<Kernel>(parsed));
}

CudaEvaluator::CudaEvaluator(Builder builder, std::unique_ptr<WorkerClient> worker, Target target,
                             std::vector<int> sizes)
    : builder_(std::move(builder)), worker_(std::move(worker)), target_(std::move(target)),
      sizes_(std::move(sizes)) {}

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

Judgement CudaEvaluator::judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                               std::stop_token stop) {
  Judgement judgement{.fitness = measure(genome.id, built, screening_calls, incumbent, stop),
                      .incumbent = {},
                      .confirmed = incumbent == nullptr};
  const bool challenger = judgement.fitness.ok() && incumbent != nullptr &&
                          judgement.fitness.speedup > least_gain * incumbent->fitness.speedup;
  if (!challenger) {
    return judgement;
  }
  judgement.fitness = measure(genome.id, built, full_calls, nullptr, stop);
  judgement.confirmed = true;
  if (judgement.fitness.speedup < close_call * incumbent->fitness.speedup) {
    Fitness again = measure(incumbent->id, incumbent->built, full_calls, nullptr, stop);
    if (again.ok()) {
      judgement.incumbent = std::move(again);
    }
  }
  return judgement;
}

/// With an incumbent, timing may give up.
Fitness CudaEvaluator::measure(const std::string& id, const Built& built, int calls,
                               const Incumbent* incumbent, std::stop_token stop) {
  JudgeRequest request;
  request.library = built.library.string();
  request.id = id;
  request.sizes = sizes_;
  request.calls = calls;
  if (incumbent != nullptr) {
    request.stop_at_ms_ratio = hopeless_ratio;
    request.best_ms = medians(incumbent->fitness);
  }
  return worker_->judge(request, stop).fitness;
}

} // namespace evo
