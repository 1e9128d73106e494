// Judging on an NVIDIA card: everything cheap and everything that can fail before the timing.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <sstream>

#include <torch/version.h>

#include "fitness/checked_run.hpp"
#include "fitness/compare.hpp"
#include "fitness/cuda_check.hpp"
#include "fitness/device.hpp"
#include "fitness/device_state.hpp"
#include "fitness/nvml.hpp"
#include "fitness/timed_candidate.hpp"
#include "fitness/timer.hpp"
#include "fitness/traces.hpp"
#include "fitness/verifier.hpp"

namespace evo {
namespace {

constexpr int probe_size = 131; // small, odd, above most tiles
constexpr int reference_warm_up = 10;
constexpr int reference_calls = 50;
constexpr double reference_enough_ms = 200;

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

std::string pci_bus_id() {
  std::array<char, 32> text{};
  check_cuda(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), 0),
             "cudaDeviceGetPCIBusId");
  return text.data();
}

CardRates card_rates() {
  const auto attribute = [](cudaDeviceAttr name) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, name, 0), "cudaDeviceGetAttribute");
    return value;
  };
  return {.multiprocessors = attribute(cudaDevAttrMultiProcessorCount),
          .clock_mhz = attribute(cudaDevAttrClockRate) / 1e3, // in kHz
          .memory_clock_mhz = attribute(cudaDevAttrMemoryClockRate) / 1e3,
          .bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth),
          .l2_bytes = static_cast<double>(attribute(cudaDevAttrL2CacheSize))};
}

/// What goes wrong before there is a candidate is the device's fault.
template <typename Work> auto or_no_device(const Work& work) {
  try {
    return work();
  } catch (const CandidateFailure& failure) { // a CUDA call of ours
    throw NoDevice(failure.detail);
  } catch (const c10::Error& error) { // most likely too little memory
    throw NoDevice(concat("LibTorch on the CUDA device: ", error.what_without_backtrace()));
  }
}

class CudaDevice : public Device {
public:
  explicit CudaDevice(const PrepareRequest& request)
      : oracle_(request.problem, at::Device(at::kCUDA, 0), request.input_seed), verifier_(oracle_),
        nvml_(pci_bus_id()) {
    describe();
    probe_ = prepare_probe();
    load_libraries(request.problem.sizes.front());
  }

  PrepareResponse prepare(const PrepareRequest& request) override {
    return or_no_device([&] { return prepare_sizes(request); });
  }

  JudgeResponse judge(const JudgeRequest& request) override {
    JudgeResponse response;
    run(request.library, response, [&](const Candidate& candidate) {
      for (std::size_t i = 0; i < request.sizes.size(); ++i) {
        response.fitness.sizes.push_back(judge_size(candidate, request, i));
      }
      response.fitness.verdict = Verdict::Ok;
    });
    finish(response.fitness);
    return response;
  }

  CompareResponse compare(const CompareRequest& request) override {
    std::vector<const Prepared*> sizes;
    for (const int size : request.sizes) {
      sizes.push_back(&find(size));
    }
    CompareResponse response;
    const Before before;
    std::unique_ptr<Comparison> comparison;
    guarded(response, [&] {
      comparison = std::make_unique<Comparison>(oracle_, timer_, nvml_, std::move(sizes));
      response = comparison->run(request);
    });
    leave_if_spoilt(response, comparison, before);
    return response;
  }

  VerifyResponse verify(const VerifyRequest& request) override {
    VerifyResponse response;
    run(request.library, response, [&](const Candidate& candidate) {
      response.verification = verifier_.verify(candidate, request);
      response.conclude(oracle_.problem().vary);
    });
    return response;
  }

private:
  /// What there was before a candidate was loaded.
  struct Before {
    Traces traces;
    std::size_t free_memory = free_device_memory();
  };

  struct Damage {
    bool spoilt = true;
    std::optional<CandidateFailure> failure = {};
    bool outranks = true; // what was found out before
  };

  static bool passed(const JudgeResponse& response) { return response.fitness.ok(); }
  static bool passed(const CompareResponse& response) { return response.verdict == Verdict::Ok; }
  static bool passed(const VerifyResponse& response) { return response.verdict == Verdict::Ok; }

  /// Loads the candidate, sees it through the probe, and turns what `work` throws into a failed
  /// response, which also tells what state the candidate leaves.
  template <typename Response, typename Work>
  void run(const std::string& library, Response& response, const Work& work) {
    const Before before;
    std::unique_ptr<Candidate> candidate;
    guarded(response, [&] {
      candidate = std::make_unique<Candidate>(library, oracle_.problem().entry);
      check_exactly(oracle_, *candidate, probe_);
      work(*candidate);
    });
    leave_if_spoilt(response, candidate, before);
  }

  template <typename Response, typename Work>
  static void guarded(Response& response, const Work& work) {
    try {
      work();
    } catch (const CandidateFailure& failure) {
      response.fail(failure.verdict, failure.detail);
    } catch (const c10::Error& error) {
      const CandidateFailure failure = failure_of(error);
      response.fail(failure.verdict, failure.detail);
    }
  }

  void describe();
  PrepareResponse prepare_sizes(const PrepareRequest& request);
  void load_libraries(int size) const;
  Prepared prepare(int size) const;
  Prepared prepare_probe() const;
  SizeResult known_or_timed(const std::vector<SizeResult>& known, Prepared& prepared) const;
  SizeResult time_reference(Prepared& prepared) const;
  static CandidateFailure failure_of(const c10::Error& error);
  Damage look_for_damage(const Before& before) const;
  const Prepared& find(int size) const;
  at::Tensor fingerprint() const;

  SizeResult judge_size(const Candidate& candidate, const JudgeRequest& request,
                        std::size_t index) const;
  TimeSummary time(const Candidate& candidate, const Prepared& prepared,
                   const JudgeRequest& request, std::size_t index) const;

  /// A spoilt worker leaves after this response, without unloading what was loaded: that would fail
  /// too, or end its threads with a crash.
  template <typename Response, typename Loaded>
  void leave_if_spoilt(Response& response, std::unique_ptr<Loaded>& loaded,
                       const Before& before) const {
    const Damage damage = look_for_damage(before);
    if (damage.failure && (damage.outranks || passed(response))) {
      response.fail(damage.failure->verdict, damage.failure->detail);
    }
    if (damage.spoilt) {
      response.leaving = true;
      loaded.release();
    }
  }

  static void finish(Fitness& fitness) {
    fitness.measured = true;
    if (fitness.ok()) {
      fitness.speedup = geometric_mean_speedup(fitness.sizes);
    } else {
      fitness.sizes.clear();
    }
  }

  Oracle oracle_;
  Verifier verifier_;
  Timer timer_;
  Nvml nvml_;
  PrepareResponse description_;
  std::vector<Prepared> sizes_;
  Prepared probe_;
  at::Tensor fingerprint_;
  std::optional<DeviceState> state_; // when the preparation was done
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
  description_.card = card_rates();
  description_.card.clock_mhz = std::max(description_.card.clock_mhz, nvml_.most_sm_clock_mhz());
  description_.conditions_missing = nvml_.missing();
}

PrepareResponse CudaDevice::prepare_sizes(const PrepareRequest& request) {
  for (const int size : request.sizes) {
    sizes_.push_back(prepare(size));
    description_.reference.push_back(known_or_timed(request.reference, sizes_.back()));
  }
  if (!sizes_.empty()) {
    description_.reference_precision =
        precision_of(description_.reference.front().relative_l2_error);
  }
  fingerprint_ = fingerprint();
  state_.emplace();
  return description_;
}

/// The reference's library creates its handle and loads its kernels at the first call.
void CudaDevice::load_libraries(int size) const {
  oracle_.reference(oracle_.inputs(size, 0), size);
  check_cuda(cudaDeviceSynchronize(), "the reference");
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
    prepared.live.emplace_back(input.nbytes(), oracle_.device());
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

SizeResult CudaDevice::known_or_timed(const std::vector<SizeResult>& known,
                                      Prepared& prepared) const {
  const auto found = std::ranges::find(known, prepared.size, &SizeResult::size);
  if (found == known.end()) {
    return time_reference(prepared);
  }
  prepared.reference_ms = found->reference_ms;
  return *found;
}

SizeResult CudaDevice::time_reference(Prepared& prepared) const {
  const Contents& contents = prepared.contents[0];
  const auto time_once = [&] {
    return timer_.time([&] { oracle_.reference(contents.inputs, prepared.size); });
  };
  repeat(time_once, {.calls = reference_warm_up});
  const TimeSummary timing =
      summarize(repeat(time_once, {.calls = reference_calls, .enough_ms = reference_enough_ms}));
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

/// What LibTorch throws in the middle of a judgement.
CandidateFailure CudaDevice::failure_of(const c10::Error& error) {
  const std::string message = error.what_without_backtrace();
  if (message.find("out of memory") != std::string::npos) {
    return {Verdict::OverLimits, "it leaves the judge too little device memory to work with"};
  }
  return {Verdict::LaunchError, message.substr(0, message.find('\n'))};
}

/// The next candidate is judged here only if this one has left everything as it was.
CudaDevice::Damage CudaDevice::look_for_damage(const Before& before) const {
  if (cudaDeviceSynchronize() != cudaSuccess) { // sticky: nothing in this context works any more
    return {.failure = CandidateFailure{Verdict::LaunchError, "it leaves the device in an error"},
            .outranks = false};
  }
  if (auto left = before.traces.left()) {
    return {.failure = std::move(left)};
  }
  state_->restore();
  // LibTorch keeps what it has needed, so some loss is our own.
  const std::size_t free = free_device_memory();
  const std::size_t at_start = state_->free_memory();
  if (free + at_start / 2 < before.free_memory) {
    return {.failure =
                CandidateFailure{Verdict::OverLimits,
                                 concat("it leaves ", free >> 20, " of ", before.free_memory >> 20,
                                        " MiB of device memory free")}};
  }
  if (free < at_start / 8) { // many took a little: a new process has it all
    return {};
  }
  try {
    if (!fingerprint().equal(fingerprint_) || !verifier_.intact()) {
      return {.failure = CandidateFailure{
                  Verdict::OutOfBounds, "it changed memory that belongs to none of its arguments"}};
    }
  } catch (const c10::Error& error) { // a context that was reset under us, say
    return {.failure =
                CandidateFailure{Verdict::Suspicious, concat("the device does not work after it: ",
                                                             failure_of(error).detail)}};
  }
  return {.spoilt = false};
}

SizeResult CudaDevice::judge_size(const Candidate& candidate, const JudgeRequest& request,
                                  std::size_t index) const {
  const Prepared& prepared = find(request.sizes[index]);
  const Accuracy accuracy = check(oracle_, candidate, prepared, prepared.contents[0]);
  check(oracle_, candidate, prepared,
        prepared.contents[1]); // the same pointers: nothing may be remembered
  const TimeSummary timing = time(candidate, prepared, request, index);
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

/// On the contents that the last check has left in place.
TimeSummary CudaDevice::time(const Candidate& candidate, const Prepared& prepared,
                             const JudgeRequest& request, std::size_t index) const {
  TimingOptions options{.calls = std::max(request.calls, 1)};
  if (request.stop_at_ms_ratio > 0 && index < request.best_ms.size()) {
    options.stop_above_ms = request.stop_at_ms_ratio * request.best_ms[index];
  }
  reset_persisting_l2();
  const TimedCandidate timed(oracle_, candidate, prepared, prepared.contents[1]);
  const auto time_once = [&] { return timed.call(timer_); };
  const std::vector<CallTime> calls = repeat(time_once, options);
  settle_doubts(calls, time_once, oracle_.at_size(prepared.size));
  return summarize(calls);
}

} // namespace

std::unique_ptr<Device> make_cuda_device(const PrepareRequest& request) {
  select_device(request.device);
  require_cuda(request.device);
  return or_no_device([&] { return std::make_unique<CudaDevice>(request); });
}

} // namespace evo
