// Judging without a card: the lowered kernel runs on the CPU, small but watched closely.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>

#include <torch/version.h>

#include "fitness/concat.hpp"
#include "fitness/cpu/executor.hpp"
#include "fitness/cpu/extrapolate.hpp"
#include "fitness/device.hpp"
#include "fitness/oracle.hpp"
#include "fitness/traces.hpp"
#include "fitness/truth.hpp"

namespace evo {
namespace {

constexpr std::array orders{cpu::ThreadOrder::Ascending, cpu::ThreadOrder::Descending,
                            cpu::ThreadOrder::Shuffled};
constexpr int precision_size = 64; // large enough to tell TF32 from float32
// Where launches are counted: multiples of every tile, so that the first block is an inner one.
constexpr int near_size = 256;
constexpr int far_size = 512;

std::string_view name_of(cpu::ThreadOrder order) {
  return order == cpu::ThreadOrder::Ascending    ? "ascending"
         : order == cpu::ThreadOrder::Descending ? "descending"
                                                 : "shuffled";
}

struct PreparedSize {
  std::vector<cpu::Tensor> integers;
  std::vector<float> integer_answer; // exact
  std::vector<cpu::Tensor> reals;
  at::Tensor reference;
  at::Tensor exact;
};

std::vector<float> values_of(const at::Tensor& tensor) {
  const at::Tensor floats = tensor.to(at::kFloat).contiguous();
  const float* begin = floats.data_ptr<float>();
  return {begin, begin + floats.numel()};
}

/// A case at one size.
struct PreparedCase {
  std::vector<cpu::Tensor> inputs;
  Truth truth;
};

class CpuDevice : public Device {
public:
  explicit CpuDevice(const PrepareRequest& request)
      : oracle_(request.problem, at::kCPU, request.input_seed) {
    description_.device_name = "CPU";
    description_.torch_version = TORCH_VERSION;
    const PreparedSize& prepared = at(precision_size);
    description_.reference_precision =
        precision_of(relative_l2(prepared.reference, prepared.exact));
  }

  /// Any size can be asked for, and is prepared when it is.
  PrepareResponse prepare(const PrepareRequest&) override { return description_; }

  JudgeResponse judge(const JudgeRequest& request) override {
    prepare_all(request); // threads that LibTorch starts for it are none of the candidate's
    JudgeResponse response;
    const Traces traces;
    auto executor = std::make_unique<cpu::Executor>(request.library, oracle_.problem().entry);
    try {
      for (const int size : request.sizes) {
        check_integers(*executor, size);
        response.fitness.sizes.push_back(check_reals(*executor, size));
      }
      response.counts = count_launches(*executor, request.count_sizes);
      response.fitness.verdict = Verdict::Ok;
    } catch (const CandidateFailure& failure) {
      response.fail(failure.verdict, failure.detail);
    }
    if (const auto left = traces.left()) {
      response.fail(left->verdict, left->detail);
      response.leaving = true;
      executor.release(); // unloading it would end its threads with a crash
    }
    return response;
  }

  CompareResponse compare(const CompareRequest&) override {
    CompareResponse response;
    response.fail(Verdict::OverLimits, "the model backend does not time what it runs");
    return response;
  }

  /// Each case once: its contents only, for small integers have shown races and stray accesses.
  VerifyResponse verify(const VerifyRequest& request) override {
    VerifyResponse response;
    try {
      cpu::Executor executor(request.library, oracle_.problem().entry);
      const RunCase run_case = [&](std::size_t index, int size) {
        const PreparedCase& prepared = case_at(index, size);
        const auto values = run(executor, prepared.inputs, size, {});
        return measure(oracle_, prepared.truth, shaped(values, size));
      };
      const VerifyPlan plan{.level = request.level, .sizes = request.sizes, .full = request.full};
      response.verification =
          verify_cases(oracle_.problem().outlines(), plan, oracle_.problem().rtol, run_case);
      response.verification.calls = static_cast<int>(response.verification.cases.size());
      response.conclude(oracle_.problem().vary);
    } catch (const CandidateFailure& failure) {
      response.fail(failure.verdict, failure.detail);
    }
    return response;
  }

private:
  void prepare_all(const JudgeRequest& request);
  const PreparedSize& at(int size);
  const PreparedCase& case_at(std::size_t index, int size);
  at::Tensor shaped(const std::vector<float>& values, int size) const;
  std::vector<cpu::Tensor> named(const Tensors& inputs) const;
  std::vector<float> run(cpu::Executor& executor, const std::vector<cpu::Tensor>& inputs, int size,
                         const cpu::RunOptions& options,
                         std::vector<LaunchCounts>* counts = nullptr) const;
  void check_integers(cpu::Executor& executor, int size);
  SizeResult check_reals(cpu::Executor& executor, int size);
  std::vector<LaunchCounts> count_launches(cpu::Executor& executor, const std::vector<int>& sizes);

  Oracle oracle_;
  PrepareResponse description_;
  std::map<int, PreparedSize> prepared_;
  std::map<std::pair<std::size_t, int>, PreparedCase> cases_; // by index and size
};

void CpuDevice::prepare_all(const JudgeRequest& request) {
  for (const int size : request.sizes) {
    at(size);
  }
  if (!request.count_sizes.empty()) {
    at(near_size);
    at(far_size);
  }
}

/// Sizes are whatever candidates ask for; few of them, and small.
const PreparedSize& CpuDevice::at(int size) {
  const auto [place, fresh] = prepared_.try_emplace(size);
  if (fresh) {
    const Tensors integers = oracle_.small_integers(size);
    const Tensors reals = oracle_.inputs(size, 0);
    place->second = {named(integers), values_of(oracle_.exact(integers, size)), named(reals),
                     oracle_.reference(reals, size), oracle_.exact(reals, size)};
  }
  return place->second;
}

const PreparedCase& CpuDevice::case_at(std::size_t index, int size) {
  const auto [place, fresh] = cases_.try_emplace({index, size});
  if (fresh) {
    const Tensors inputs = oracle_.case_inputs(index, size, 0);
    place->second = {named(inputs), find_truth(oracle_, inputs, size)};
  }
  return place->second;
}

at::Tensor CpuDevice::shaped(const std::vector<float>& values, int size) const {
  return at::tensor(values).view(oracle_.shape_of(oracle_.problem().output, size));
}

std::vector<cpu::Tensor> CpuDevice::named(const Tensors& inputs) const {
  std::vector<cpu::Tensor> tensors;
  for (const at::Tensor& input : inputs) {
    tensors.push_back({oracle_.problem().inputs[tensors.size()].name, values_of(input)});
  }
  return tensors;
}

std::vector<float> CpuDevice::run(cpu::Executor& executor, const std::vector<cpu::Tensor>& inputs,
                                  int size, const cpu::RunOptions& options,
                                  std::vector<LaunchCounts>* counts) const {
  const TensorSpec& spec = oracle_.problem().output;
  cpu::Tensor output{spec.name, {}};
  const auto shape = oracle_.shape_of(spec, size);
  output.values.resize(options.extent == cpu::Extent::Nothing ? 0 : c10::multiply_integers(shape));
  cpu::Run result = executor.run(inputs, output, oracle_.entry_dims(size), options);
  if (result.verdict != Verdict::Ok) {
    throw CandidateFailure{result.verdict, concat(result.detail, ", at ", oracle_.at_size(size))};
  }
  if (counts != nullptr) {
    *counts = std::move(result.counts);
  }
  return std::move(output.values);
}

/// Sums are exact here, so every order of threads and of additions gives the same bits.
void CpuDevice::check_integers(cpu::Executor& executor, int size) {
  const PreparedSize& prepared = at(size);
  for (const cpu::ThreadOrder order : orders) {
    const auto values = run(executor, prepared.integers, size, {.order = order});
    const auto [wrong, right] = std::ranges::mismatch(values, prepared.integer_answer);
    if (wrong != values.end()) {
      const bool first = order == orders.front();
      throw CandidateFailure{first ? Verdict::WrongAnswer : Verdict::NonDeterministic,
                             concat(oracle_.problem().output.name, "[", wrong - values.begin(),
                                    "] is ", *wrong, " and should be ", *right, " at ",
                                    oracle_.at_size(size), " with small integers",
                                    first ? "" : " and threads in ", first ? "" : name_of(order),
                                    first ? "" : " order only")};
    }
  }
}

SizeResult CpuDevice::check_reals(cpu::Executor& executor, int size) {
  const PreparedSize& prepared = at(size);
  const auto values = run(executor, prepared.reals, size, {});
  const Accuracy accuracy =
      oracle_.compare(shaped(values, size), prepared.reference, prepared.exact);
  if (accuracy.violations > 0) {
    throw CandidateFailure{Verdict::WrongAnswer, oracle_.complaint(accuracy, size)};
  }
  SizeResult result;
  result.size = size;
  result.max_abs_error = accuracy.max_abs_error;
  result.relative_l2_error = accuracy.relative_l2_error;
  return result;
}

std::vector<LaunchCounts> CpuDevice::count_launches(cpu::Executor& executor,
                                                    const std::vector<int>& sizes) {
  const auto launches = [&](int size, const std::vector<cpu::Tensor>& inputs, cpu::Extent extent) {
    std::vector<LaunchCounts> counts;
    run(executor, inputs, size, {.extent = extent, .count = true}, &counts);
    std::ranges::for_each(counts, [&](LaunchCounts& launch) { launch.size = size; });
    return counts;
  };
  if (sizes.empty()) {
    return {};
  }
  const auto near = launches(near_size, at(near_size).integers, cpu::Extent::FirstBlock);
  const auto far = launches(far_size, at(far_size).integers, cpu::Extent::FirstBlock);
  const std::vector<cpu::Tensor> nothing(oracle_.problem().inputs.size());
  std::vector<LaunchCounts> all;
  for (const int size : sizes) {
    const auto counted = cpu::extrapolate(near, far, launches(size, nothing, cpu::Extent::Nothing));
    all.insert(all.end(), counted.begin(), counted.end());
  }
  return all;
}

} // namespace

std::unique_ptr<Device> make_cpu_device(const PrepareRequest& request) {
  return std::make_unique<CpuDevice>(request);
}

} // namespace evo
