#include "tests/support/cpu.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "fitness/cpu/lower.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

using cpu::ThreadOrder;

constexpr double tolerance = 1e-4;

std::size_t elements(const TensorSpec& tensor, const Dims& dims) {
  std::size_t count = 1;
  for (const long extent : resolve(tensor, dims)) {
    count *= static_cast<std::size_t>(extent);
  }
  return count;
}

/// The same on every platform; consecutive states of one generator.
std::uint64_t next(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

std::vector<int> dims_in_order(const Problem& problem, int size) {
  const Dims dims = problem.dims(size);
  std::vector<int> values;
  for (const std::string& name : problem.dim_order) {
    values.push_back(dims.at(name));
  }
  return values;
}

/// std::runtime_error says what the kernel did wrong.
std::vector<float> run(const Problem& problem, const std::filesystem::path& library, int size,
                       Values values, ThreadOrder order) {
  cpu::Executor executor(library, problem.entry);
  cpu::Tensor result = output(problem, size);
  const cpu::Run run = executor.run(inputs(problem, size, values), result,
                                    dims_in_order(problem, size), {.order = order});
  if (run.verdict != Verdict::Ok) {
    throw std::runtime_error(
        fmt::format("at size {}, {}: {}", size, to_string(run.verdict), run.detail));
  }
  return result.values;
}

/// Of a source that many others are compared with.
const std::vector<float>& expected(const Problem& problem, const std::string& source, int size,
                                   Values values) {
  static std::map<std::tuple<std::string, std::string, int, Values>, std::vector<float>> known;
  auto& result = known[{problem.name, source, size, values}];
  if (result.empty()) {
    result = run(problem, cpu_library(source), size, values, ThreadOrder::Ascending);
  }
  return result;
}

struct Comparison {
  int size = 0;
  Values values = Values::Integers;
  ThreadOrder order = ThreadOrder::Shuffled;
  double allowed = 0;
};

void compare(const Problem& problem, const std::string& before,
             const std::filesystem::path& library, const Comparison& how) {
  const std::vector<float>& right = expected(problem, before, how.size, how.values);
  const std::vector<float> computed = run(problem, library, how.size, how.values, how.order);
  for (std::size_t i = 0; i < right.size(); ++i) {
    const double error = std::abs(double{computed[i]} - double{right[i]});
    if (!(error <= how.allowed * (1 + std::abs(right[i])))) {
      throw std::runtime_error(fmt::format("at size {}, {}[{}] is {} before and {} after", how.size,
                                           problem.output.name, i, right[i], computed[i]));
    }
  }
}

} // namespace

const Problem& lora() {
  static const Problem problem = Problem::load(in_repository("seeds/lora/problem.toml"));
  return problem;
}

std::vector<cpu::Tensor> inputs(const Problem& problem, int size, Values values) {
  std::vector<cpu::Tensor> tensors;
  std::uint64_t state = 1;
  for (const TensorSpec& spec : problem.inputs) {
    cpu::Tensor tensor{spec.name, std::vector<float>(elements(spec, problem.dims(size)))};
    for (float& value : tensor.values) {
      value = values == Values::Integers ? static_cast<float>(next(state) % 5) - 2.0f
                                         : static_cast<float>(next(state)) * 0x1p-30f - 1.0f;
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

cpu::Tensor output(const Problem& problem, int size) {
  return {problem.output.name, std::vector<float>(elements(problem.output, problem.dims(size)),
                                                  std::numeric_limits<float>::quiet_NaN())};
}

std::filesystem::path cpu_library(const std::string& source, const Target& target) {
  static std::map<std::pair<std::string, std::string>, std::filesystem::path> built;
  if (const auto found = built.find({source, target.arch}); found != built.end()) {
    return found->second;
  }
  const auto lowered = cpu::lower(parse(source, target));
  if (const auto* failure = std::get_if<BuildFailure>(&lowered)) {
    throw std::runtime_error(failure->detail);
  }
  const auto library = cpu::HostBuilder(EVO_TEST_CACHE).build(std::get<std::string>(lowered), {});
  if (const auto* failure = std::get_if<BuildFailure>(&library)) {
    throw std::runtime_error(failure->detail);
  }
  return built[{source, target.arch}] = std::get<std::filesystem::path>(library);
}

std::vector<float> cpu_result(const Problem& problem, const std::string& source, int size,
                              Values values) {
  return run(problem, cpu_library(source), size, values, ThreadOrder::Shuffled);
}

std::string cpu_difference(const Problem& problem, const std::string& before,
                           const std::string& after) {
  std::set<int> sizes;
  for (const std::string& source : {before, after}) {
    std::ranges::copy(cpu::probe_sizes(parse(source)), std::inserter(sizes, sizes.end()));
  }
  try {
    const auto library = cpu_library(after);
    for (const int size : sizes) {
      for (const ThreadOrder order :
           {ThreadOrder::Shuffled, ThreadOrder::Descending, ThreadOrder::Ascending}) {
        compare(problem, before, library, {.size = size, .order = order});
      }
    }
    compare(problem, before, library,
            {.size = *sizes.begin(), .values = Values::Reals, .allowed = tolerance});
  } catch (const std::runtime_error& difference) {
    return difference.what();
  }
  return {};
}

std::string cpu_difference_at(const Problem& problem, const std::string& before,
                              const std::string& after, const std::vector<int>& sizes,
                              bool keeps_order, const Target& target) {
  try {
    const auto library = cpu_library(after, target);
    for (const int size : sizes) {
      compare(problem, before, library,
              {.size = size, .values = keeps_order ? Values::Reals : Values::Integers});
    }
  } catch (const std::runtime_error& difference) {
    return difference.what();
  }
  return {};
}

std::vector<int> sizes_with_other_bits(const std::string& before, const std::string& after,
                                       const std::vector<int>& sizes) {
  std::vector<int> result;
  for (const int size : sizes) {
    const auto expected = cpu_result(lora(), before, size, Values::Reals);
    const auto actual = cpu_result(lora(), after, size, Values::Reals);
    if (std::memcmp(expected.data(), actual.data(), expected.size() * sizeof(float)) != 0) {
      result.push_back(size);
    }
  }
  return result;
}

} // namespace evo::test
