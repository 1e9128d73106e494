#include "fitness/accuracy.hpp"

#include <algorithm>
#include <set>

#include "fitness/concat.hpp"
#include "fitness/mix.hpp"
#include "fitness/named.hpp"

namespace evo {
namespace {

constexpr double allowed_rms_ratio = 2; // times the reference's own

/// The sizes at which the `position`-th of `count` cases runs: i of each counts on in a circle.
std::vector<int> rotated(std::size_t position, std::size_t count, const VerifyPlan& plan) {
  if (plan.full || plan.sizes.empty()) {
    return plan.sizes;
  }
  std::vector<int> sizes;
  for (std::size_t i = position; i < std::max(count, plan.sizes.size()); i += count) {
    sizes.push_back(plan.sizes[i % plan.sizes.size()]);
  }
  return sizes;
}

/// Ascending points of the sweep up to the first that fails.
double headroom_of(std::vector<CaseResult> cases) {
  std::erase_if(cases, [](const CaseResult& result) { return result.sweep <= 0; });
  std::ranges::stable_sort(cases, {}, &CaseResult::sweep);
  double headroom = 0;
  for (auto at = cases.begin(); at != cases.end();) {
    const auto next = std::ranges::find_if(
        at, cases.end(), [&](const CaseResult& other) { return other.sweep > at->sweep; });
    if (!std::all_of(at, next, [](const CaseResult& result) { return result.passed(); })) {
      break;
    }
    headroom = at->sweep;
    at = next;
  }
  return headroom;
}

/// Of the cases beyond the level: the sweep in ascending order; with `full` also the others.
std::vector<std::size_t> beyond(const std::vector<CaseOutline>& cases, const VerifyPlan& plan) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].level > plan.level && (plan.full || cases[i].sweep > 0)) {
      indices.push_back(i);
    }
  }
  std::ranges::stable_sort(indices, {}, [&](std::size_t i) { return cases[i].sweep; });
  return indices;
}

std::vector<std::size_t> bound(const std::vector<CaseOutline>& cases, const VerifyPlan& plan) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].level <= plan.level) {
      indices.push_back(i);
    }
  }
  return indices;
}

} // namespace

std::string_view to_string(Level level) {
  switch (level) {
  case Level::Harness:
    return "harness";
  case Level::Default:
    return "default";
  case Level::Strict:
    return "strict";
  }
  return "unknown";
}

std::optional<Level> level_from(std::string_view text) {
  return find_named(all_levels, text);
}

// Each test is written so that a NaN fails it.
std::optional<std::string> find_fault(const CaseFigures& figures, double rtol) {
  const double twice = allowed_rms_ratio * figures.reference_rms_error;
  if (!(figures.max_error < no_number && figures.rms_error < no_number)) {
    return "a NaN or an infinity is among the results";
  }
  if (figures.decidable()) {
    if (figures.violations != 0) {
      return concat(figures.violations,
                    " elements differ from the reference by more than the "
                    "tolerance, by up to ",
                    figures.max_error, " times it");
    }
  } else if (!(figures.rms_error <= twice)) {
    return concat("the rms error is ", figures.rms_error / figures.reference_rms_error,
                  " times the reference's own; ", allowed_rms_ratio,
                  " is allowed where the tolerance decides nothing");
  }
  if (figures.zero_passes && !(figures.rms_error <= std::max(rtol * figures.output_rms, twice))) {
    return concat("the rms error is ", figures.rms_error, " where the output's rms is ",
                  figures.output_rms, "; zeros would pass there, so ", rtol, " of it is allowed");
  }
  return std::nullopt;
}

const CaseResult* Verification::first_fault() const {
  const auto found = std::ranges::find_if(
      cases, [](const CaseResult& result) { return result.binding && !result.passed(); });
  return found == cases.end() ? nullptr : &*found;
}

std::vector<int> Verification::sizes() const {
  std::set<int> all;
  for (const CaseResult& result : cases) {
    all.insert(result.size);
  }
  return {all.begin(), all.end()};
}

Verification verify_cases(const std::vector<CaseOutline>& cases, const VerifyPlan& plan,
                          double rtol, const RunCase& run) {
  Verification verification{.level = plan.level, .cases = {}};
  const auto all_pass = [&](const std::vector<std::size_t>& indices, bool binding) {
    for (std::size_t position = 0; position < indices.size(); ++position) {
      const CaseOutline& outline = cases[indices[position]];
      for (const int size : rotated(position, indices.size(), plan)) {
        CaseResult result{.name = outline.name,
                          .size = size,
                          .sweep = outline.sweep,
                          .binding = binding,
                          .figures = run(indices[position], size),
                          .fault = {}};
        result.fault = find_fault(result.figures, rtol).value_or("");
        verification.cases.push_back(std::move(result));
        if (!plan.full && !verification.cases.back().passed()) {
          return false;
        }
      }
    }
    return true;
  };
  if (all_pass(bound(cases, plan), true)) {
    all_pass(beyond(cases, plan), false);
  }
  verification.headroom = headroom_of(verification.cases);
  return verification;
}

std::vector<int> verification_sizes(const std::vector<int>& measured, std::uint64_t seed) {
  const auto [low, high] = std::ranges::minmax(measured);
  std::set<int> sizes{low, high};
  const auto first_from = [&](int from, int remainder, int modulus) {
    const int size = from + ((remainder - from) % modulus + modulus) % modulus;
    if (size <= high) {
      sizes.insert(size);
    }
  };
  first_from(low + (high - low) / 2, 1, 2);
  first_from(low + (high - low) / 3, 4, 8);
  const auto count = static_cast<std::uint64_t>(high - low + 1);
  sizes.insert(low + static_cast<int>(mix(seed) % count));
  return {sizes.begin(), sizes.end()};
}

} // namespace evo
