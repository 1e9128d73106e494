// Tiled sums on the CPU: every bit of the plain ones, and right under the rewrites that follow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

std::string seed() {
  return canonical(read(in_repository("seeds/lora/naive.cu")));
}

std::string tiled(const std::string& source) {
  return followed(source, {{&tile_reduction(), "project/k tile 16x32x64, 2x2 per thread"},
                           {&tile_reduction(), "multiply/k tile 32x32x8, 2x2 per thread"}});
}

TEST(TileReductionValues, KeepEveryBit) {
  EXPECT_THAT(sizes_with_other_bits(seed(), tiled(seed()), {15, 31, 33, 67, 129}),
              testing::IsEmpty());
}

TEST(TileReductionValues, StayAfterAFusionAndUnderFurtherRewrites) {
  const std::string fused = apply(fuse_epilogue(), seed(), "multiply/epilogue fuse update");
  EXPECT_EQ(
      cpu_difference(lora(), seed(),
                     followed(tiled(fused), {{&relayout_tile(), "multiply/w transpose"},
                                             {&load_fragments(), "project/k fragments"},
                                             {&vectorise_access(), "multiply/x copy vector 2"},
                                             {&double_buffer(), "project/k0 double buffer"},
                                             {&double_buffer(), "multiply/k0 double buffer"}})),
      "");
}

} // namespace
} // namespace evo::test
