// Judging on an NVIDIA card: everything cheap and everything that can fail before the timing.
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <torch/version.h>

#include "fitness/candidate.hpp"
#include "fitness/cuda_check.hpp"
#include "fitness/device.hpp"
#include "fitness/guarded_buffer.hpp"
#include "fitness/oracle.hpp"
#include "fitness/timer.hpp"

namespace evo {
namespace {

constexpr int probe_size = 131; // small, odd, above most tiles
constexpr int reference_warm_up = 10;
constexpr int reference_calls = 50;
constexpr double reference_enough_ms = 200;
constexpr std::size_t largest_workspace = std::size_t{1} << 40; // more is an overflow
constexpr int warm_up = 2;                                      // the checked runs warm up too

struct Contents {
  Tensors inputs;
  at::Tensor reference;
  at::Tensor exact; // float64, of the first contents only
};

/// One size of the problem on the card.
struct Prepared {
  int size = 0;
  std::vector<int> dims;
  std::vector<std::int64_t> output_shape;
  Tensors live; // what candidates are given; the pointers stay, the contents change
  std::vector<Contents> contents;
  double reference_ms = 0;

  std::vector<const float*> pointers() const {
    std::vector<const float*> all;
    for (const at::Tensor& tensor : live) {
      all.push_back(tensor.data_ptr<float>());
    }
    return all;
  }

  std::size_t output_bytes() const { return contents[0].reference.nbytes(); }

  void load(const Contents& chosen) const {
    for (std::size_t i = 0; i < live.size(); ++i) {
      live[i].copy_(chosen.inputs[i]);
    }
  }

  /// Bit by bit: a NaN differs from no NaN.
  bool holds(const Contents& chosen) const {
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (!live[i].view(at::kInt).equal(chosen.inputs[i].view(at::kInt))) {
        return false;
      }
    }
    return true;
  }
};

/// The numbering of CUDA and torch starts at the chosen device, before either looks.
void select_device(int device) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string chosen = std::to_string(device);
  if (visible != nullptr) {
    std::istringstream names(visible);
    for (int i = 0; i <= device; ++i) {
      if (!std::getline(names, chosen, ',')) {
        throw NoDevice(
            concat("there is no device ", device, ": CUDA_VISIBLE_DEVICES is '", visible, "'"));
      }
    }
  }
  setenv("CUDA_VISIBLE_DEVICES", chosen.c_str(), 1);
}

void require_cuda(int device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    throw NoDevice(concat("CUDA device ", device, " cannot be used: ",
                          error != cudaSuccess ? cudaGetErrorString(error) : "there is none",
                          "; is there a card, and a driver as new as the CUDA toolkit?"));
  }
  if (!at::hasCUDA()) {
    throw NoDevice(concat("this LibTorch, ", TORCH_VERSION,
                          ", is built without CUDA: install a PyTorch with CUDA for python3 and "
                          "build evo-worker again"));
  }
}

std::string version_text(int version) { // 13000 is 13.0
  return concat(version / 1000, ".", version % 1000 / 10);
}

class CudaDevice : public Device {
public:
  explicit CudaDevice(const PrepareRequest& request)
      : oracle_(request.problem, at::Device(at::kCUDA, 0), request.input_seed) {
    describe();
    for (const int size : request.sizes) {
      sizes_.push_back(prepare(size));
      description_.reference.push_back(time_reference(sizes_.back()));
    }
    if (!sizes_.empty()) {
      description_.reference_precision =
          precision_of(description_.reference.front().relative_l2_error);
    }
    probe_ = prepare_probe();
    fingerprint_ = fingerprint();
  }

  const PrepareResponse& description() const override { return description_; }

  JudgeResponse judge(const JudgeRequest& request) override {
    JudgeResponse response;
    std::unique_ptr<Candidate> candidate;
    try {
      candidate = std::make_unique<Candidate>(request.library, oracle_.problem().entry);
      check(*candidate, probe_, probe_.contents[0]);
      for (std::size_t i = 0; i < request.sizes.size(); ++i) {
        response.fitness.sizes.push_back(judge_size(*candidate, request, i));
      }
      response.fitness.verdict = Verdict::Ok;
    } catch (const Failure& failure) {
      response.fitness.verdict = failure.verdict;
      response.fitness.detail = failure.detail;
    }
    if (cudaDeviceSynchronize() != cudaSuccess) { // sticky: nothing in this context works any more
      response.leaving = true;
      candidate.release(); // unloading it would fail too
    } else if (!fingerprint().equal(fingerprint_)) {
      response.leaving = true;
      response.fitness.verdict = Verdict::OutOfBounds;
      response.fitness.detail = "it changed memory that belongs to none of its arguments";
    }
    finish(response.fitness);
    return response;
  }

private:
  void describe();
  Prepared prepare(int size) const;
  Prepared prepare_probe() const;
  SizeResult time_reference(Prepared& prepared) const;
  const Prepared& find(int size) const;
  at::Tensor fingerprint() const;

  SizeResult judge_size(const Candidate& candidate, const JudgeRequest& request,
                        std::size_t index) const;
  Accuracy check(const Candidate& candidate, const Prepared& prepared,
                 const Contents& contents) const;
  GuardedBuffer guarded_workspace(const Candidate& candidate, const Prepared& prepared) const;
  Timing time(const Candidate& candidate, const Prepared& prepared, const JudgeRequest& request,
              std::size_t index) const;
  Accuracy check_output(const at::Tensor& output, const Prepared& prepared,
                        const Contents& contents) const;

  static void finish(Fitness& fitness) {
    fitness.measured = true;
    if (fitness.ok()) {
      fitness.speedup = geometric_mean_speedup(fitness.sizes);
    } else {
      fitness.sizes.clear();
    }
  }

  Oracle oracle_;
  Timer timer_;
  PrepareResponse description_;
  std::vector<Prepared> sizes_;
  Prepared probe_;
  at::Tensor fingerprint_;
};

void CudaDevice::describe() {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  int driver = 0;
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  description_.device_name = properties.name;
  description_.arch = concat("sm_", properties.major, properties.minor);
  description_.driver = version_text(driver);
  description_.torch_version = TORCH_VERSION;
}

Prepared CudaDevice::prepare(int size) const {
  Prepared prepared{.size = size,
                    .dims = oracle_.entry_dims(size),
                    .output_shape = oracle_.shape_of(oracle_.problem().output, size),
                    .live = {},
                    .contents = {}};
  for (const int draw : {0, 1}) {
    Contents contents{oracle_.inputs(size, draw), {}, {}};
    contents.reference = oracle_.reference(contents.inputs, size);
    if (draw == 0) {
      contents.exact = oracle_.exact(contents.inputs, size);
    }
    prepared.contents.push_back(std::move(contents));
  }
  for (const at::Tensor& input : prepared.contents[0].inputs) {
    prepared.live.push_back(input.clone());
  }
  return prepared;
}

Prepared CudaDevice::prepare_probe() const {
  Prepared prepared = prepare(probe_size);
  const Tensors inputs = oracle_.small_integers(probe_size);
  const at::Tensor exact = oracle_.exact(inputs, probe_size);
  prepared.contents = {{inputs, exact.to(at::kFloat), exact}};
  return prepared;
}

SizeResult CudaDevice::time_reference(Prepared& prepared) const {
  const Contents& contents = prepared.contents[0];
  const auto call = [&] { oracle_.reference(contents.inputs, prepared.size); };
  const Timing timing = timer_.measure(
      call,
      {.warm_up = reference_warm_up, .calls = reference_calls, .enough_ms = reference_enough_ms});
  prepared.reference_ms = timing.median_ms;
  SizeResult result;
  result.size = prepared.size;
  result.reference_ms = timing.median_ms;
  result.spread_ms = timing.spread_ms;
  result.calls = timing.calls;
  result.relative_l2_error = relative_l2(contents.reference, contents.exact);
  return result;
}

const Prepared& CudaDevice::find(int size) const {
  const auto found = std::ranges::find(sizes_, size, &Prepared::size);
  if (found == sizes_.end()) {
    throw std::invalid_argument(concat("size ", size, " was not prepared"));
  }
  return *found;
}

/// A sum over the bits of everything that candidates are judged by.
at::Tensor CudaDevice::fingerprint() const {
  Tensors sums;
  const auto add = [&sums](const at::Tensor& tensor) {
    if (tensor.defined()) {
      sums.push_back(tensor.view(at::kInt).sum());
    }
  };
  const auto add_all = [&add](const Prepared& prepared) {
    for (const Contents& contents : prepared.contents) {
      std::ranges::for_each(contents.inputs, add);
      add(contents.reference);
      add(contents.exact);
    }
  };
  std::ranges::for_each(sizes_, add_all);
  add_all(probe_);
  return at::stack(sums).cpu();
}

SizeResult CudaDevice::judge_size(const Candidate& candidate, const JudgeRequest& request,
                                  std::size_t index) const {
  const Prepared& prepared = find(request.sizes[index]);
  const Accuracy accuracy = check(candidate, prepared, prepared.contents[0]);
  check(candidate, prepared, prepared.contents[1]); // the same pointers: nothing may be remembered
  const Timing timing = time(candidate, prepared, request, index);
  SizeResult result;
  result.size = prepared.size;
  result.median_ms = timing.median_ms;
  result.spread_ms = timing.spread_ms;
  result.calls = timing.calls;
  result.reference_ms = prepared.reference_ms;
  result.max_abs_error = accuracy.max_abs_error;
  result.relative_l2_error = accuracy.relative_l2_error;
  result.violations = accuracy.violations;
  return result;
}

GuardedBuffer CudaDevice::guarded_workspace(const Candidate& candidate,
                                            const Prepared& prepared) const {
  const std::size_t bytes = candidate.workspace_bytes(prepared.dims);
  const Failure too_large{Verdict::OverLimits,
                          concat("a workspace of ", bytes, " bytes at ",
                                 oracle_.at_size(prepared.size), " does not fit")};
  if (bytes > largest_workspace) {
    throw too_large;
  }
  try {
    return GuardedBuffer(bytes, oracle_.device());
  } catch (const c10::Error&) { // out of memory
    throw too_large;
  }
}

/// One run between guard zones; Failure unless everything about it is right.
Accuracy CudaDevice::check(const Candidate& candidate, const Prepared& prepared,
                           const Contents& contents) const {
  const GuardedBuffer workspace = guarded_workspace(candidate, prepared);
  const GuardedBuffer output(prepared.output_bytes(), oracle_.device());
  prepared.load(contents);
  candidate.launch(prepared.pointers(), static_cast<float*>(output.data()), prepared.dims,
                   workspace.data());
  check_cuda(cudaDeviceSynchronize(), concat("a run at ", oracle_.at_size(prepared.size)));
  if (!output.intact() || !workspace.intact()) {
    throw Failure{Verdict::OutOfBounds,
                  concat("it writes outside its ", output.intact() ? "workspace" : "output", " at ",
                         oracle_.at_size(prepared.size))};
  }
  if (!prepared.holds(contents)) {
    throw Failure{Verdict::TouchedInput,
                  concat("it changes an input at ", oracle_.at_size(prepared.size))};
  }
  return check_output(output.as_floats(prepared.output_shape), prepared, contents);
}

Accuracy CudaDevice::check_output(const at::Tensor& output, const Prepared& prepared,
                                  const Contents& contents) const {
  if (const std::int64_t unwritten = count_poison(output); unwritten > 0) {
    throw Failure{Verdict::UnwrittenOutput,
                  concat(oracle_.elements(static_cast<double>(unwritten), prepared.size),
                         " are never written at ", oracle_.at_size(prepared.size))};
  }
  const Accuracy accuracy = oracle_.compare(output, contents.reference, contents.exact);
  if (accuracy.violations > 0) {
    throw Failure{Verdict::WrongAnswer, oracle_.complaint(accuracy, prepared.size)};
  }
  return accuracy;
}

/// As the judge calls it: output and workspace are allocated anew each time, inside the time.
Timing CudaDevice::time(const Candidate& candidate, const Prepared& prepared,
                        const JudgeRequest& request, std::size_t index) const {
  const auto on_device = at::TensorOptions().device(oracle_.device());
  const std::vector<const float*> pointers = prepared.pointers();
  const auto allocate_output = [&] {
    return at::empty(prepared.output_shape, on_device.dtype(at::kFloat));
  };
  const auto launch = [&](const at::Tensor& output) {
    const auto bytes = static_cast<std::int64_t>(candidate.workspace_bytes(prepared.dims));
    const at::Tensor workspace = at::empty({bytes}, on_device.dtype(at::kByte));
    candidate.launch(pointers, output.data_ptr<float>(), prepared.dims, workspace.data_ptr());
  };

  TimingOptions options{.warm_up = warm_up, .calls = std::max(request.calls, 1)};
  if (request.stop_at_ms_ratio > 0 && index < request.best_ms.size()) {
    options.stop_above_ms = request.stop_at_ms_ratio * request.best_ms[index];
  }
  const Timing timing = timer_.measure([&] { launch(allocate_output()); }, options);

  const at::Tensor output = allocate_output(); // most likely where the timed calls wrote
  output.view(at::kInt).fill_(poison_word);
  launch(output);
  check_cuda(cudaDeviceSynchronize(), "the call after the timed ones");
  check_output(output, prepared, prepared.contents[1]);
  return timing;
}

} // namespace

std::unique_ptr<Device> make_cuda_device(const PrepareRequest& request) {
  select_device(request.device);
  require_cuda(request.device);
  try {
    return std::make_unique<CudaDevice>(request);
  } catch (const Failure& failure) { // a CUDA call of ours
    throw NoDevice(failure.detail);
  } catch (const c10::Error& error) { // most likely too little memory
    throw NoDevice(
        concat("LibTorch on CUDA device ", request.device, ": ", error.what_without_backtrace()));
  }
}

} // namespace evo
