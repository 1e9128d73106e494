#include "fitness/verifier.hpp"

#include <algorithm>
#include <array>

#include "fitness/concat.hpp"
#include "fitness/device.hpp"
#include "fitness/mix.hpp"

namespace evo {
namespace {

constexpr std::int64_t most_kept_bytes = std::int64_t{4} << 30;
constexpr std::array sample_sizes{131, 388}; // small: a call costs what its checks cost
constexpr int first_sample_draw = 2;         // judgements take the ones before
constexpr int draws_per_size = 4;

at::Tensor sum_of_bits(const Truth& truth) {
  return truth.reference.view(at::kInt).sum() + truth.ideal_offset.view(at::kInt).sum();
}

} // namespace

Verification Verifier::verify(const Candidate& candidate, const VerifyRequest& request) {
  const Problem& problem = oracle_.problem();
  const std::vector<CaseOutline> outlines = problem.outlines();
  const std::uint64_t calls_before = calls_;
  const auto calls = [&] { return static_cast<int>(calls_ - calls_before); };
  const RunCase run = [&](std::size_t index, int size) {
    return run_case(candidate, {.index = index, .size = size},
                    outlines[index].level <= request.level);
  };
  Verification verification =
      verify_cases(outlines, {.level = request.level, .sizes = request.sizes, .full = request.full},
                   problem.rtol, run);
  if (verification.first_fault() == nullptr) {
    repeat(candidate, request.calls - calls());
  }
  verification.calls = calls();
  return verification;
}

bool Verifier::intact() const {
  return std::ranges::all_of(kept_, [](const auto& entry) {
    const Kept& kept = entry.second;
    return sum_of_bits(*kept.truth).cpu().equal(kept.bits);
  });
}

CaseFigures Verifier::run_case(const Candidate& candidate, const Place& place, bool binding) {
  const Tensors inputs = oracle_.case_inputs(place.index, place.size, place.draw);
  const auto right = truth(place, inputs);
  const Outcome first = call(candidate, place.size, inputs, {});
  const CaseFigures figures = measure(oracle_, *right, first.output);
  if (find_fault(figures, oracle_.problem().rtol)) {
    return figures;
  }
  const Outcome second = call(candidate, place.size, inputs, first.output);
  if (second.as_before) {
    return figures;
  }
  const CaseFigures others = measure(oracle_, *right, second.output);
  const auto fault = find_fault(others, oracle_.problem().rtol);
  if (fault && binding) {
    refuse_second(place, *fault);
  }
  return fault ? others : figures;
}

/// Contents change at every call, and come back.
void Verifier::repeat(const Candidate& candidate, int calls) {
  std::vector<Sample> pool = samples();
  for (int i = 0; i < calls; ++i) {
    Sample& sample = pool[mix(calls_) % pool.size()];
    const Outcome outcome = call(candidate, sample.place.size, sample.inputs, sample.accepted);
    if (outcome.as_before) {
      continue;
    }
    const auto right = truth(sample.place, sample.inputs);
    const auto fault = find_fault(measure(oracle_, *right, outcome.output), oracle_.problem().rtol);
    if (fault && sample.accepted.defined()) {
      refuse_second(sample.place, *fault);
    }
    if (fault) {
      throw CandidateFailure{Verdict::WrongAnswer,
                             concat("at ", oracle_.at_size(sample.place.size), ", ", *fault)};
    }
    if (!sample.accepted.defined()) {
      sample.accepted = outcome.output;
    }
  }
}

Outcome Verifier::call(const Candidate& candidate, int size, const Tensors& inputs,
                       const at::Tensor& before) {
  const Arguments arguments = shuffled_arguments(oracle_, candidate, size, mix(++calls_));
  return checked_call(oracle_, candidate, size, arguments, inputs, before);
}

std::shared_ptr<const Truth> Verifier::truth(const Place& place, const Tensors& inputs) {
  if (const auto found = kept_.find(place); found != kept_.end()) {
    return found->second.truth;
  }
  auto fresh = std::make_shared<const Truth>(find_truth(oracle_, inputs, place.size));
  const auto bytes =
      static_cast<std::int64_t>(fresh->reference.nbytes() + fresh->ideal_offset.nbytes());
  if (kept_bytes_ + bytes <= most_kept_bytes) {
    kept_bytes_ += bytes;
    kept_.emplace(place, Kept{fresh, sum_of_bits(*fresh).cpu()});
  }
  return fresh;
}

std::vector<Verifier::Sample> Verifier::samples() const {
  std::vector<Sample> pool;
  for (const int size : sample_sizes) {
    for (int draw = first_sample_draw; draw < first_sample_draw + draws_per_size; ++draw) {
      pool.push_back({.place = {.index = 0, .size = size, .draw = draw},
                      .inputs = oracle_.inputs(size, draw),
                      .accepted = {}});
    }
  }
  return pool;
}

void Verifier::refuse_second(const Place& place, const std::string& fault) const {
  throw CandidateFailure{Verdict::NonDeterministic,
                         concat("the same inputs at ", oracle_.at_size(place.size),
                                " gave a right result before; now ", fault)};
}

} // namespace evo
