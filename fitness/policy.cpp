#include "fitness/policy.hpp"

#include <algorithm>
#include <charconv>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "fitness/policy/directives.hpp"
#include "fitness/policy/syntax.hpp"

namespace evo {
namespace {

constexpr int oldest_architecture = 100; // smaller numbers in an #if are truth values

/// "sm_86" and "sm_90a" as __CUDA_ARCH__ writes them.
int architecture_of(const Target& target) {
  constexpr std::size_t prefix = 3; // sm_
  int number = 0;
  std::from_chars(target.arch.data() + prefix, target.arch.data() + target.arch.size(), number);
  return number * 10;
}

/// One architecture for each stretch between `bounds` (sorted) that does not hold the target's.
std::vector<int> other_architectures(std::vector<int> bounds, int target) {
  std::erase_if(bounds, [](int bound) { return bound < oldest_architecture; });
  std::vector<int> result;
  for (std::size_t i = 0; i <= bounds.size() && !bounds.empty(); ++i) {
    const bool above = i == 0 || bounds[i - 1] <= target;
    const bool below = i == bounds.size() || target < bounds[i];
    if (!above || !below) {
      result.push_back(i == 0 ? bounds[0] - 1 : bounds[i - 1]);
    }
  }
  return result;
}

/// The violation in what a compilation with `options` sees.
std::optional<std::string> violation_as(const Kernel& kernel, const std::string& compilation,
                                        std::vector<std::string> options) {
  options.insert(options.end(),
                 {"-Wno-everything", "-Werror=unknown-attributes", "-Werror=ignored-attributes"});
  const auto view = Kernel::parse_as(kernel.source(), kernel.target(), options);
  if (const auto* error = std::get_if<ParseError>(&view)) {
    return fmt::format("the file does not parse {}, where {}; make it parse there too", compilation,
                       error->message);
  }
  return policy::syntax_violation(std::get<Kernel>(view));
}

} // namespace

std::optional<std::string> policy_violation(const Kernel& kernel) {
  auto bounds = policy::read_directives(kernel);
  if (auto* violation = std::get_if<std::string>(&bounds)) {
    return std::move(*violation);
  }
  if (auto violation = policy::syntax_violation(kernel)) {
    return violation;
  }
  if (auto violation = violation_as(kernel, "as host code", {"--cuda-host-only"})) {
    return violation;
  }
  for (const int other :
       other_architectures(std::get<std::vector<int>>(bounds), architecture_of(kernel.target()))) {
    if (auto violation =
            violation_as(kernel, fmt::format("for __CUDA_ARCH__ {}", other),
                         {"-U__CUDA_ARCH__", fmt::format("-D__CUDA_ARCH__={}", other)})) {
      return violation;
    }
  }
  return std::nullopt;
}

} // namespace evo
