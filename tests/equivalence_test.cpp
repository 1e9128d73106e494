// Every rewrite computes the same, on the CPU: bit by bit on small integers under all orders of
// threads, without a race or an access out of bounds. The goldens that are whole operators, and
// proposals on the seeds; all of these behind the label `long`. Many in a row: random_trails.
#include <algorithm>

#include <gtest/gtest.h>

#include "mutators/mutator.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/goldens.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

bool is_lora(const std::string& source) {
  return source.find("lora_workspace(") != std::string::npos;
}

class EveryMutator : public testing::TestWithParam<const Mutator*> {
protected:
  const Mutator& mutator() const { return *GetParam(); }

  /// At most `most` proposals on each seed, spread over all.
  void expect_seeds_keep_their_values(std::size_t most) const {
    for (const char* name : {"naive.cu", "tiled.cu"}) {
      SCOPED_TRACE(name);
      const std::string seed = canonical(read(in_repository("seeds/lora") / name));
      const Proposals proposals(mutator(), seed);
      const std::vector<std::string> labels = proposals.labels();
      const std::size_t stride = std::max<std::size_t>(1, (labels.size() + most - 1) / most);
      for (std::size_t i = 0; i < labels.size(); i += stride) {
        EXPECT_EQ(cpu_difference(lora(), seed, proposals.apply(labels[i])), "") << labels[i];
      }
    }
  }
};

TEST_P(EveryMutator, KeepsTheGoldensValues) {
  for (const Golden& golden : goldens(mutator())) {
    if (is_lora(golden.before)) {
      EXPECT_EQ(
          cpu_difference(lora(), golden.before, apply(mutator(), golden.before, golden.label)), "")
          << golden.file;
    }
  }
}

TEST_P(EveryMutator, KeepsTheSeedsValues) {
  expect_seeds_keep_their_values(2);
}

TEST_P(EveryMutator, LongKeepsTheSeedsValuesInEveryProposal) {
  expect_seeds_keep_their_values(1000);
}

INSTANTIATE_TEST_SUITE_P(Mutators, EveryMutator, testing::ValuesIn(mutators()),
                         [](const auto& test) { return std::string(test.param->about().name); });

} // namespace
} // namespace evo::test
