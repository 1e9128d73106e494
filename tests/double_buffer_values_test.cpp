// Double-buffered kernels on the CPU: every bit kept, also of reals, after other rewrites, with
// other tiles, and where the loop has one iteration or a few.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/tile_variants.hpp"

namespace evo {
namespace {

constexpr const char* label = "gemm/k0 double buffer";

std::string seed() {
  return canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
}

std::string double_buffered(const std::string& source) {
  return test::apply(double_buffer(), source, label);
}

void expect_same_bits(const std::string& before, const std::string& after) {
  EXPECT_THAT(test::sizes_with_other_bits(before, after, {1, 7, 8, 9, 16, 17, 65}),
              testing::IsEmpty());
}

TEST(DoubleBufferValues, KeepEveryBitAtAnyNumberOfIterations) {
  expect_same_bits(seed(), double_buffered(seed()));
}

TEST(DoubleBufferValues, KeepEveryBitAfterOtherRewrites) {
  const std::string fused = test::apply(fuse_epilogue(), seed(), "gemm/epilogue fuse update");
  const std::string unrolled = test::apply(unroll_loop(), fused, "gemm/k unroll full");
  expect_same_bits(seed(), double_buffered(unrolled));
}

TEST(DoubleBufferValues, KeepEveryBitWithOtherTiles) {
  for (const char* change : {"gemm_block_k = 16", "gemm_thread_m = 2", "gemm_block_n = 128"}) {
    SCOPED_TRACE(change);
    const auto variants = test::tile_variants(seed());
    const auto variant = std::ranges::find(variants, change, &test::TileVariant::change);
    ASSERT_NE(variant, variants.end());
    expect_same_bits(variant->source, double_buffered(variant->source));
  }
}

TEST(DoubleBufferValues, NeedTheBarrierBehindTheLastStepOfAnInnerLoop) {
  const std::string after =
      test::read(test::in_repository("tests/mutators/double_buffer/after_outer.cu"));
  const std::string barrier = "    }\n    __syncthreads();\n\n";
  const std::size_t at = after.find(barrier);
  ASSERT_NE(at, std::string::npos);
  std::string without = after;
  without.replace(at, barrier.size(), "    }\n");
  EXPECT_THAT(test::cpu_difference(test::lora(), after, without), testing::HasSubstr("race"));
}

} // namespace
} // namespace evo
