#include "fitness/compare.hpp"

#include <array>
#include <utility>

#include "fitness/block_order.hpp"
#include "fitness/candidate.hpp"
#include "fitness/cuda_check.hpp"
#include "fitness/empty_kernel.hpp"

namespace evo {
namespace {

constexpr std::size_t draws = 2; // contents that blocks take turns in: nothing may be remembered
constexpr int most_repetitions = 2;

/// Bytes that push everything out of the L2 cache.
at::Tensor flushing_buffer(at::Device device) {
  int l2_bytes = 0;
  check_cuda(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0), "the size of L2");
  return at::empty({2 * std::int64_t{l2_bytes}}, at::TensorOptions(at::kByte).device(device));
}

} // namespace

struct Comparison::Rival {
  std::string id;
  Candidate candidate;
  std::vector<std::array<std::unique_ptr<TimedCandidate>, draws>> at_size; // made when first used
  std::vector<std::vector<CallTime>> calls;                                // per size
};

Comparison::Comparison(const Oracle& oracle, const Timer& timer, const Nvml& nvml,
                       std::vector<const Prepared*> sizes)
    : oracle_(oracle), timer_(timer), nvml_(nvml), sizes_(std::move(sizes)) {}

Comparison::~Comparison() = default;

CompareResponse Comparison::run(const CompareRequest& request) {
  CompareResponse response;
  try {
    load(request);
    for (int i = 0; i < request.blocks; ++i) {
      response.blocks.push_back(block(static_cast<std::size_t>(i)));
    }
    check_clocks();
    if (request.cold_calls > 0) {
      response.cold_ms = cold(request.cold_calls);
      response.empty_kernel_ms = time_empty_kernel(timer_);
    }
    response.verdict = Verdict::Ok;
  } catch (const CandidateFailure& failure) {
    response.fail(failure.verdict, failure.detail);
    response.culprit = suspect_;
  }
  return response;
}

void Comparison::load(const CompareRequest& request) {
  for (const Contender& contender : request.contenders) {
    suspect_ = contender.id;
    rivals_.push_back(std::unique_ptr<Rival>(new Rival{
        .id = contender.id,
        .candidate = Candidate(contender.library, oracle_.problem().entry),
        .at_size = std::vector<std::array<std::unique_ptr<TimedCandidate>, draws>>(sizes_.size()),
        .calls = std::vector<std::vector<CallTime>>(sizes_.size())}));
  }
}

/// Taken again while the card is slowed, a bounded number of times.
TimedBlock Comparison::block(std::size_t number) {
  for (int repetitions = 0;; ++repetitions) {
    TimedBlock block;
    block.repetitions = repetitions;
    for (std::size_t size = 0; size < sizes_.size(); ++size) {
      block.sizes.push_back(block_at(size, number));
    }
    block.conditions = nvml_.read();
    if (!block.conditions || !block.conditions->slowed || repetitions == most_repetitions) {
      return block;
    }
  }
}

BlockTimes Comparison::block_at(std::size_t size, std::size_t number) {
  const Prepared& prepared = *sizes_[size];
  const std::size_t draw = number % draws;
  const Contents& contents = prepared.contents[draw];
  enter(size, draw);
  BlockTimes times{.size = prepared.size,
                   .contenders_ms = std::vector<std::vector<double>>(rivals_.size()),
                   .reference_ms = {}};
  for (const std::size_t next : block_order(rivals_.size(), random_)) {
    if (next == rivals_.size()) {
      suspect_.clear();
      times.reference_ms.push_back(
          timer_.time([&] { oracle_.reference(contents.inputs, prepared.size); }).event_ms);
    } else {
      Rival& rival = *rivals_[next];
      suspect_ = rival.id;
      const CallTime time = rival.at_size[size][draw]->call(timer_);
      rival.calls[size].push_back(time);
      times.contenders_ms[next].push_back(time.event_ms);
    }
  }
  return times;
}

/// Puts the contents where candidates read them; whoever meets them for the first time is called
/// once, and so is the reference.
void Comparison::enter(std::size_t size, std::size_t draw) {
  const Prepared& prepared = *sizes_[size];
  const Contents& contents = prepared.contents[draw];
  prepared.load(contents);
  bool first = false;
  for (const auto& rival : rivals_) {
    auto& timed = rival->at_size[size][draw];
    if (!timed) {
      first = true;
      suspect_ = rival->id;
      reset_persisting_l2();
      timed = std::make_unique<TimedCandidate>(oracle_, rival->candidate, prepared, contents);
    }
  }
  if (first) {
    suspect_.clear();
    oracle_.reference(contents.inputs, prepared.size);
  }
}

void Comparison::check_clocks() {
  for (const auto& rival : rivals_) {
    for (std::size_t size = 0; size < sizes_.size(); ++size) {
      const auto again = [&] {
        enter(size, 0);
        suspect_ = rival->id;
        return rival->at_size[size][0]->call(timer_);
      };
      suspect_ = rival->id;
      settle_doubts(rival->calls[size], again, oracle_.at_size(sizes_[size]->size));
    }
  }
}

/// Medians per contender and size, each call after a flush of the L2 cache.
std::vector<std::vector<double>> Comparison::cold(int calls) {
  const at::Tensor buffer = flushing_buffer(oracle_.device());
  const auto flush = [&] { buffer.fill_(1); };
  std::vector<std::vector<double>> medians(rivals_.size());
  for (std::size_t size = 0; size < sizes_.size(); ++size) {
    enter(size, 0);
    for (std::size_t i = 0; i < rivals_.size(); ++i) {
      suspect_ = rivals_[i]->id;
      const auto call = [&] { return rivals_[i]->at_size[size][0]->call(timer_, flush); };
      medians[i].push_back(summarize(repeat(call, {.calls = calls})).median_ms);
    }
  }
  return medians;
}

} // namespace evo
