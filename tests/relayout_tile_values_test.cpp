// Tiles laid out anew, on the CPU, before and after every other rewrite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

std::string seed() {
  return canonical(read(in_repository("seeds/lora/tiled.cu")));
}

std::string relaid(std::string source) {
  for (const char* label :
       {"gemm/w transpose", "gemm/w pad 4", "gemm/w swizzle", "gemm/x transpose", "gemm/x pad 1"}) {
    source = apply(relayout_tile(), source, label);
  }
  return source;
}

/// The source after the rewrite in the middle of a mutator's list; the source itself where it has
/// none.
std::string mutated(const Mutator& mutator, const std::string& source) {
  const Proposals proposals(mutator, source);
  const std::vector<std::string> labels = proposals.labels();
  return labels.empty() ? source : proposals.apply(labels[labels.size() / 2]);
}

class RelayoutTileValues : public testing::TestWithParam<const Mutator*> {};

TEST_P(RelayoutTileValues, StayBeforeAnotherRewrite) {
  EXPECT_EQ(cpu_difference(lora(), seed(), mutated(*GetParam(), relaid(seed()))), "");
}

TEST_P(RelayoutTileValues, StayAfterAnotherRewrite) {
  EXPECT_EQ(cpu_difference(lora(), seed(), relaid(mutated(*GetParam(), seed()))), "");
}

INSTANTIATE_TEST_SUITE_P(Mutators, RelayoutTileValues,
                         testing::Values(&unroll_loop(), &fuse_epilogue(), &reshape_tile(),
                                         &double_buffer(), &launch_bounds()),
                         [](const auto& test) { return std::string(test.param->about().name); });

} // namespace
} // namespace evo::test
