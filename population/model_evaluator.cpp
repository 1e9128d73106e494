#include "population/model_evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "population/cuda_evaluator.hpp"

namespace evo {
namespace {

constexpr std::size_t most_sizes = 2; // of a full verification

} // namespace

ModelEvaluator::ModelEvaluator(Builder builder, cpu::HostBuilder host_builder,
                               std::unique_ptr<WorkerClient> worker, Problem problem, Card card,
                               Level level)
    : builder_(std::move(builder)), host_builder_(std::move(host_builder)),
      worker_(std::move(worker)), problem_(std::move(problem)), card_(std::move(card)),
      level_(level) {}

std::variant<Built, BuildFailure> ModelEvaluator::build(const Genome& genome, std::stop_token stop,
                                                        Gates gates) const {
  const auto kernel = parse_gate(genome, card_.target, gates);
  if (const auto* failure = std::get_if<BuildFailure>(&kernel)) {
    return *failure;
  }
  auto device = builder_.build(genome.id, genome.source, stop);
  if (auto* failure = std::get_if<BuildFailure>(&device)) {
    return std::move(*failure);
  }
  const auto lowered = cpu::lower(std::get<Kernel>(kernel));
  if (const auto* failure = std::get_if<BuildFailure>(&lowered)) {
    return *failure;
  }
  auto host = host_builder_.build(std::get<std::string>(lowered), stop);
  if (auto* failure = std::get_if<BuildFailure>(&host)) {
    return std::move(*failure);
  }
  auto& artifact = std::get<Artifact>(device);
  return Built{.library = std::move(std::get<std::filesystem::path>(host)),
               .binary_digest = std::move(artifact.cubin_digest),
               .kernels = std::move(artifact.kernels),
               .probe_sizes = cpu::probe_sizes(std::get<Kernel>(kernel))};
}

Judgement ModelEvaluator::judge(const Genome& genome, const Built& built,
                                const Incumbent* incumbent, std::stop_token stop) {
  JudgeRequest request;
  request.library = built.library.string();
  request.id = genome.id;
  request.sizes = built.probe_sizes;
  request.count_sizes = problem_.sizes;
  const JudgeResponse response = worker_->judge(request, stop);
  Judgement judgement{.fitness = response.fitness, .incumbent = {}};
  judgement.fitness.measured = false;
  if (!judgement.fitness.ok()) {
    return judgement;
  }
  std::vector<SizeResult> sizes = estimate(built, response);
  if (!std::ranges::all_of(sizes, [](const auto& s) { return std::isfinite(s.median_ms); })) {
    return {.fitness =
                failed(Verdict::OverLimits, "a launch fits no multiprocessor of " + card_.name),
            .incumbent = {}};
  }
  judgement.fitness.sizes = std::move(sizes);
  judgement.fitness.speedup = geometric_mean_speedup(judgement.fitness.sizes);
  if (incumbent == nullptr || judgement.fitness.speedup > incumbent->fitness.speedup) {
    judgement.fitness =
        verified(std::move(judgement.fitness), verify(genome, built, false, std::move(stop)));
  }
  return judgement;
}

VerifyResponse ModelEvaluator::verify(const Genome& genome, const Built& built, bool full,
                                      std::stop_token stop) {
  VerifyRequest request;
  request.library = built.library.string();
  request.id = genome.id;
  request.level = level_;
  request.sizes = built.probe_sizes;
  std::ranges::sort(request.sizes); // the smallest are the cheapest
  request.sizes.resize(std::min(request.sizes.size(), full ? most_sizes : std::size_t{1}));
  request.full = full;
  return worker_->verify(request, std::move(stop));
}

/// The problem's sizes, with the worst errors of the CPU run.
std::vector<SizeResult> ModelEvaluator::estimate(const Built& built,
                                                 const JudgeResponse& response) const {
  SizeResult worst;
  for (const SizeResult& probe : response.fitness.sizes) {
    worst.max_abs_error = std::max(worst.max_abs_error, probe.max_abs_error);
    worst.relative_l2_error = std::max(worst.relative_l2_error, probe.relative_l2_error);
  }
  std::vector<SizeResult> sizes;
  for (const int size : problem_.sizes) {
    SizeResult result = worst;
    result.size = size;
    result.median_ms = estimate_ms(card_, response.counts, built.kernels, size);
    result.reference_ms = estimate_reference_ms(card_, problem_.flops_at(size));
    sizes.push_back(result);
  }
  return sizes;
}

} // namespace evo
