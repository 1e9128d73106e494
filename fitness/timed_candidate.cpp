#include "fitness/timed_candidate.hpp"

#include <algorithm>
#include <random>

#include "fitness/cuda_check.hpp"
#include "fitness/guarded_buffer.hpp"

namespace evo {
namespace {

constexpr std::int64_t poison_stride = 1021; // words; a prime, so that no tile hides between
constexpr int calls_in_doubt = 20;

/// Candidates cannot know it, and nothing that is reported depends on it.
std::int64_t random_offset() {
  static std::mt19937_64 random(std::random_device{}());
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(poison_stride));
}

void poison_some(const at::Tensor& output) {
  const at::Tensor words = output.view(at::kInt).view(-1);
  const std::int64_t offset = std::min(random_offset(), words.numel() - 1);
  words.slice(0, offset, words.numel(), poison_stride).fill_(poison_word);
}

} // namespace

TimedCandidate::TimedCandidate(const Oracle& oracle, const Candidate& candidate,
                               const Prepared& prepared, const Contents& contents)
    : oracle_(oracle), candidate_(candidate), prepared_(prepared), contents_(contents),
      pointers_(prepared.pointers()) {
  const at::Tensor output = allocate_output();
  output.view(at::kInt).fill_(poison_word);
  launch(output);
  check_cuda(cudaDeviceSynchronize(), concat("a run at ", oracle.at_size(prepared.size)));
  check_inputs();
  check_output(oracle_, output, prepared_, contents_);
  accepted_ = output.view(at::kInt).clone();
}

CallTime TimedCandidate::call(const Timer& timer, const std::function<void()>& before) const {
  poison_some(allocate_output()); // freed at once: the next of its size lies there
  before();
  check_cuda(cudaDeviceSynchronize(), "what comes before a timed call");
  at::Tensor output;
  const CallTime time = timer.time([&] {
    output = allocate_output();
    launch(output);
  });
  check_inputs();
  if (!output.view(at::kInt).equal(accepted_)) {
    check_output(oracle_, output, prepared_, contents_);
  }
  return time;
}

/// Here, not at the end, so that nobody else is blamed for what comes out of changed inputs.
void TimedCandidate::check_inputs() const {
  if (!prepared_.holds(contents_)) {
    throw CandidateFailure{Verdict::TouchedInput,
                           concat("it changes an input at ", oracle_.at_size(prepared_.size))};
  }
}

at::Tensor TimedCandidate::allocate_output() const {
  return at::empty(prepared_.output_shape,
                   at::TensorOptions().device(oracle_.device()).dtype(at::kFloat));
}

void TimedCandidate::launch(const at::Tensor& output) const {
  const auto bytes = static_cast<std::int64_t>(candidate_.workspace_bytes(prepared_.dims));
  const at::Tensor workspace =
      at::empty({bytes}, at::TensorOptions().device(oracle_.device()).dtype(at::kByte));
  candidate_.launch(pointers_, output.data_ptr<float>(), prepared_.dims, workspace.data_ptr());
}

void settle_doubts(std::vector<CallTime> calls, const std::function<CallTime()>& time_once,
                   const std::string& where) {
  if (clocks_disagree(calls).empty()) {
    return;
  }
  for (int i = 0; i < calls_in_doubt; ++i) {
    calls.push_back(time_once());
  }
  if (const std::string complaint = clocks_disagree(calls); !complaint.empty()) {
    throw CandidateFailure{Verdict::Suspicious, concat(complaint, ", at ", where)};
  }
}

void reset_persisting_l2() {
  if (cudaCtxResetPersistingL2Cache() != cudaSuccess) { // a card that has none
    cudaGetLastError();
  }
}

} // namespace evo
