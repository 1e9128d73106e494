// doctor: what evo finds on this machine, and what it means for a run.
#include <cstdlib>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "fitness/builder.hpp"
#include "fitness/sass.hpp"
#include "fitness/worker_client.hpp"
#include "population/commands.hpp"
#include "population/interruption.hpp"

namespace evo {
namespace {

void report(const std::string& what, const std::string& found, const std::string& meaning) {
  fmt::print("{:<33} {}\n{:<33}   {}\n", what, found, "", meaning);
}

bool report_nvcc() {
  try {
    const auto nvcc = Builder::find_nvcc();
    report("nvcc", fmt::format("{}, CUDA {}", nvcc.string(), Builder::nvcc_version(nvcc)),
           "builds every candidate");
    const auto cuobjdump = find_cuobjdump(nvcc);
    report("cuobjdump", cuobjdump ? cuobjdump->string() : "none beside nvcc",
           cuobjdump ? "tells what precision a kernel multiplies in"
                     : "the precision that kernels multiply in stays unknown");
    return true;
  } catch (const InputError& error) {
    report("nvcc", "none", error.what());
    return false;
  }
}

std::optional<PrepareResponse> ask_worker(Backend backend, const Options& options,
                                          std::stop_token stop) {
  PrepareRequest request;
  request.backend = backend;
  request.device = options.device.value_or(0);
  request.problem = load_problem(options);
  request.sizes = {request.problem.sizes.front()};
  try {
    return WorkerClient(find_worker(), std::move(request), WorkerDeadlines{}).prepare(stop);
  } catch (const InputError& error) {
    report("worker", "none", error.what());
    return std::nullopt;
  }
}

void report_card(const PrepareResponse& card, const std::string& target) {
  report("card", fmt::format("{}, {}", card.device_name, card.arch),
         "candidates are measured on it; without --target they are built for " + card.arch);
  report("driver", "CUDA " + card.driver, "nvcc must not be newer than it can load");
  const bool tf32 = card.reference_precision == "tf32";
  report("reference precision", card.reference_precision,
         tf32 ? "the reference itself rounds its operands to TF32: a true fp32 result may fail "
                "against it"
              : "the reference computes in full fp32");
  if (!target.empty() && target != card.arch) {
    report("target", target, "is not the card's own " + card.arch);
  }
}

bool report_worker(const Options& options, std::stop_token stop) {
  const auto card = ask_worker(Backend::Cuda, options, stop);
  if (!card) {
    return false;
  }
  if (card->error.empty()) {
    report_card(*card, options.target);
    report("LibTorch", card->torch_version, "computes the reference that candidates must match");
    return true;
  }
  report("card", "none", "no times can be measured: " + card->error);
  const auto model = ask_worker(Backend::Model, options, stop);
  const bool usable = model && model->error.empty();
  report("LibTorch", usable ? model->torch_version : "unusable",
         usable ? "candidates run on the CPU against its reference; times are estimated for "
                  "sm_86, or --target"
                : model->error);
  return usable;
}

void report_environment() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text != nullptr ? text : "not set");
  };
  const bool tf32 = value("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE") == "1";
  report("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", value("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"),
         tf32 ? "PyTorch's products, the reference among them, run in TF32"
              : "PyTorch's products run in fp32 unless a program asks for TF32");
  const bool listed = std::getenv("TORCH_CUDA_ARCH_LIST") != nullptr;
  report("TORCH_CUDA_ARCH_LIST", value("TORCH_CUDA_ARCH_LIST"),
         listed
             ? "PyTorch compiles an export for each of these, so it must compile for the oldest; "
               "the search itself builds for one target only"
             : "PyTorch compiles an export for the card it finds");
}

} // namespace

int doctor_command(const Options& options) {
  const Interruption interruption({});
  const bool nvcc = report_nvcc();
  const bool worker = report_worker(options, interruption.token());
  report_environment();
  return nvcc && worker ? 0 : 1;
}

} // namespace evo
