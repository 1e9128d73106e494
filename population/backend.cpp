#include "population/backend.hpp"

#include <utility>

#include <fmt/core.h>

#include "fitness/sass.hpp"
#include "population/cuda_evaluator.hpp"
#include "population/hazard_guard.hpp"
#include "population/model_evaluator.hpp"
#include "population/sanitizer_guard.hpp"

namespace evo {
namespace {

std::unique_ptr<WorkerClient> make_worker(Backend backend, const Options& options,
                                          const Problem& problem, int standbys) {
  PrepareRequest request;
  request.backend = backend;
  request.device = options.device.value_or(0);
  request.problem = problem;
  request.sizes = problem.sizes;
  request.input_seed = options.search.seed;
  return std::make_unique<WorkerClient>(find_worker(), std::move(request), WorkerDeadlines{},
                                        standbys);
}

BackendInfo describe(Backend kind, const PrepareResponse& prepared, const std::string& target,
                     const std::filesystem::path& nvcc) {
  BackendInfo info;
  info.kind = kind;
  info.target = known_target(target);
  info.card = kind == Backend::Cuda ? prepared.device_name : target + " (model)";
  info.toolkit =
      fmt::format("CUDA {}, PyTorch {}", Builder::nvcc_version(nvcc), prepared.torch_version);
  info.driver = prepared.driver;
  info.reads_code = find_cuobjdump(nvcc).has_value();
  info.reference_precision = prepared.reference_precision;
  info.conditions_missing = prepared.conditions_missing;
  return info;
}

std::unique_ptr<FitnessEvaluator> sanitized(std::unique_ptr<FitnessEvaluator> evaluator,
                                            const Problem& problem,
                                            const std::filesystem::path& nvcc,
                                            const std::filesystem::path& cache, BackendInfo& info) {
  const auto tool = Sanitizer::find(nvcc);
  if (!tool) {
    info.remarks.push_back("compute-sanitizer was not found: elites are not checked with it");
    return evaluator;
  }
  return std::make_unique<SanitizerGuard>(
      std::move(evaluator),
      std::make_unique<Sanitizer>(SanitizerOptions{.tool = *tool, .nvcc = nvcc, .cache = cache},
                                  problem));
}

/// Runs no hazard that is known in the cache.
OpenBackend guarded(OpenBackend backend, const std::filesystem::path& cache,
                    std::string build_line) {
  auto hazards = std::make_unique<Hazards>(cache / "hazards");
  BackendInfo& info = backend.info;
  info.build_line = build_line;
  info.remarks.insert(info.remarks.end(), hazards->notes().begin(), hazards->notes().end());
  backend.evaluator = std::make_unique<HazardGuard>(
      std::move(backend.evaluator), std::move(hazards),
      fmt::format("{}, driver {}", info.card, info.driver), std::move(build_line));
  return backend;
}

} // namespace

OpenBackend open_backend(const Options& options, const Problem& problem, std::stop_token stop,
                         int standbys) {
  const std::filesystem::path nvcc = Builder::find_nvcc();
  const std::filesystem::path cache = options.population / "runs" / ".cache";
  const auto builder = [&](const Target& target) {
    BuildOptions build;
    build.nvcc = nvcc;
    build.arch = target.arch;
    build.cache = cache;
    return Builder(std::move(build));
  };

  std::string note;
  if (options.backend != BackendChoice::Model) {
    auto worker = make_worker(Backend::Cuda, options, problem, standbys);
    const PrepareResponse prepared = worker->prepare(stop);
    if (prepared.error.empty()) {
      const std::string target = options.target.empty() ? prepared.arch : options.target;
      BackendInfo info = describe(Backend::Cuda, prepared, target, nvcc);
      WorkerClient* const timer = worker.get();
      Builder build = builder(info.target);
      std::string build_line = build.command_line();
      std::unique_ptr<FitnessEvaluator> evaluator = std::make_unique<CudaEvaluator>(
          std::move(build), std::move(worker), info.target, problem.sizes,
          Floor(problem, prepared.card, prepared.arch),
          VerifySettings{options.level, verification_sizes(problem.sizes, options.search.seed)});
      if (options.sanitizer) {
        evaluator = sanitized(std::move(evaluator), problem, nvcc, cache, info);
      }
      OpenBackend backend{std::move(info), std::move(evaluator), timer};
      return guarded(std::move(backend), cache, std::move(build_line));
    }
    if (options.backend == BackendChoice::Cuda || options.device) {
      throw InputError(fmt::format("the cuda backend cannot be used: {}", prepared.error));
    }
    note = prepared.error;
  }

  auto worker = make_worker(Backend::Model, options, problem, 0);
  const PrepareResponse prepared = worker->prepare(stop);
  if (!prepared.error.empty()) {
    throw InputError(fmt::format("the model backend cannot be used: {}", prepared.error));
  }
  const std::string target = target_of(options).arch;
  BackendInfo info = describe(Backend::Model, prepared, target, nvcc);
  info.note = std::move(note);
  Builder build = builder(info.target);
  std::string build_line = build.command_line();
  auto evaluator =
      std::make_unique<ModelEvaluator>(std::move(build), cpu::HostBuilder(cache), std::move(worker),
                                       problem, Card::for_arch(target), options.level);
  return guarded({std::move(info), std::move(evaluator), nullptr}, cache, std::move(build_line));
}

} // namespace evo
