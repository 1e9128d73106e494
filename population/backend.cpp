#include "population/backend.hpp"

#include <utility>

#include <fmt/core.h>

#include "fitness/sass.hpp"
#include "population/cuda_evaluator.hpp"
#include "population/model_evaluator.hpp"

namespace evo {
namespace {

std::unique_ptr<WorkerClient> make_worker(Backend backend, const Options& options,
                                          const Problem& problem) {
  PrepareRequest request;
  request.backend = backend;
  request.device = options.device.value_or(0);
  request.problem = problem;
  request.sizes = problem.sizes;
  request.input_seed = options.search.seed;
  return std::make_unique<WorkerClient>(find_worker(), std::move(request), WorkerDeadlines{});
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

} // namespace

OpenBackend open_backend(const Options& options, const Problem& problem, std::stop_token stop) {
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
    auto worker = make_worker(Backend::Cuda, options, problem);
    const PrepareResponse prepared = worker->prepare(stop);
    if (prepared.error.empty()) {
      const std::string target = options.target.empty() ? prepared.arch : options.target;
      BackendInfo info = describe(Backend::Cuda, prepared, target, nvcc);
      WorkerClient* const timer = worker.get();
      auto evaluator = std::make_unique<CudaEvaluator>(
          builder(info.target), std::move(worker), info.target, problem.sizes,
          Floor(problem, prepared.card, prepared.arch),
          VerifySettings{options.level, verification_sizes(problem.sizes, options.search.seed)});
      return {std::move(info), std::move(evaluator), timer};
    }
    if (options.backend == BackendChoice::Cuda || options.device) {
      throw InputError(fmt::format("the cuda backend cannot be used: {}", prepared.error));
    }
    note = prepared.error;
  }

  auto worker = make_worker(Backend::Model, options, problem);
  const PrepareResponse prepared = worker->prepare(stop);
  if (!prepared.error.empty()) {
    throw InputError(fmt::format("the model backend cannot be used: {}", prepared.error));
  }
  const std::string target = target_of(options).arch;
  BackendInfo info = describe(Backend::Model, prepared, target, nvcc);
  info.note = std::move(note);
  auto evaluator = std::make_unique<ModelEvaluator>(builder(info.target), cpu::HostBuilder(cache),
                                                    std::move(worker), problem,
                                                    Card::for_arch(target), options.level);
  return {std::move(info), std::move(evaluator), nullptr};
}

} // namespace evo
