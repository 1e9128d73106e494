// Pipelined kernels on the CPU: every bit kept, also of reals, after other rewrites, with other
// tiles, and where the loop has fewer iterations than stages; and what happens when a wait or a
// barrier is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/tile_variants.hpp"

namespace evo {
namespace {

using test::Trail;
using testing::HasSubstr;
using testing::IsEmpty;

std::string seed() {
  return canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
}

/// `only`: " x" if that tile alone is asynchronous.
std::string pipelined(const std::string& source, int stages, const std::string& only = "") {
  return test::apply(pipeline_copies(), source,
                     "gemm/k0 stages " + std::to_string(stages) + " async" + only);
}

void expect_same_bits(const std::string& before, const std::string& after) {
  EXPECT_THAT(test::sizes_with_other_bits(before, after, {1, 7, 8, 9, 16, 17, 65, 68}), IsEmpty());
}

/// Both tiles loaded by vectors, one of them into a transposed tile.
const Trail vectors{{&relayout_tile(), "gemm/w transpose"},
                    {&vectorise_access(), "gemm/w copy vector 4"},
                    {&vectorise_access(), "gemm/x copy vector 4"}};

TEST(PipelineCopiesValues, KeepEveryBitAtAnyNumberOfIterations) {
  for (const int stages : {2, 3, 5}) {
    SCOPED_TRACE(stages);
    expect_same_bits(seed(), pipelined(seed(), stages));
  }
}

TEST(PipelineCopiesValues, KeepEveryBitOfVectors) {
  expect_same_bits(seed(), pipelined(test::followed(seed(), vectors), 3));
}

TEST(PipelineCopiesValues, KeepEveryBitThroughRegisters) {
  const std::string before = test::followed(seed(), vectors);
  for (const int stages : {2, 4}) {
    SCOPED_TRACE(stages);
    expect_same_bits(before, pipelined(before, stages, " x"));
  }
  expect_same_bits(seed(), pipelined(seed(), 3, " w"));
}

TEST(PipelineCopiesValues, KeepEveryBitThroughRegistersUpToTheLimit) {
  const std::string before = test::replaced(seed(), "k0 + k < d ? W", "true ? W");
  const std::string after = pipelined(before, 3, " x");
  EXPECT_THAT(after, HasSubstr("if (k0_next < d)"));
  // Where the tiles' depth divides d, what is read is in range.
  EXPECT_THAT(test::sizes_with_other_bits(before, after, {8, 16, 64, 72}), IsEmpty());
}

TEST(PipelineCopiesValues, KeepEveryBitWithOtherTiles) {
  for (const char* change : {"gemm_block_k = 16", "gemm_thread_m = 2", "gemm_block_n = 128"}) {
    SCOPED_TRACE(change);
    const auto variants = test::tile_variants(seed());
    const auto variant = std::ranges::find(variants, change, &test::TileVariant::change);
    ASSERT_NE(variant, variants.end());
    expect_same_bits(variant->source, pipelined(variant->source, 3));
  }
}

/// A pipeline's fault or difference when a text is replaced, the first time it occurs in the loop.
std::string fault(const std::string& right, const std::string& what, const std::string& by) {
  const std::size_t loop = right.find("for (int k0 = 0;");
  const std::string wrong = right.substr(0, loop) + test::replaced(right.substr(loop), what, by);
  return test::cpu_difference(test::lora(), right, wrong);
}

std::string fault(const std::string& what, const std::string& by) {
  return fault(pipelined(test::followed(seed(), vectors), 3), what, by);
}

std::string fault_of_two_stages(const std::string& what, const std::string& by) {
  return fault(pipelined(test::followed(seed(), vectors), 2, " x"), what, by);
}

TEST(PipelineCopiesValues, NeedTheBarrier) {
  EXPECT_THAT(fault("__syncthreads();", ""), HasSubstr("race"));
}

TEST(PipelineCopiesValues, NeedTheWait) {
  EXPECT_THAT(fault("__pipeline_wait_prior(gemm_stages - 2);", ""), HasSubstr("race"));
}

TEST(PipelineCopiesValues, NeedAWaitForEveryGroup) {
  EXPECT_THAT(
      fault("__pipeline_wait_prior(gemm_stages - 2)", "__pipeline_wait_prior(gemm_stages - 1)"),
      HasSubstr("race"));
}

TEST(PipelineCopiesValues, NeedTheWaitBeforeTheBarrier) {
  EXPECT_THAT(fault("__pipeline_wait_prior(gemm_stages - 2);\n    __syncthreads();",
                    "__syncthreads();\n    __pipeline_wait_prior(gemm_stages - 2);"),
              HasSubstr("race"));
}

TEST(PipelineCopiesValues, NeedAGroupInEveryIteration) {
  EXPECT_THAT(fault("__pipeline_commit();", ""), HasSubstr("race"));
}

TEST(PipelineCopiesValues, NeedAnotherStageToLoadThanTheOneComputedOn) {
  EXPECT_THAT(fault("stage == 0 ? gemm_stages - 1 : stage - 1", "stage"), HasSubstr("race"));
}

TEST(PipelineCopiesValues, NeedTheBarrierThroughRegisters) {
  EXPECT_THAT(fault_of_two_stages("__syncthreads();", ""), HasSubstr("race"));
}

TEST(PipelineCopiesValues, NeedAnotherStageToStoreThanTheOneComputedOn) {
  EXPECT_THAT(fault_of_two_stages("tiles.w[next_stage]", "tiles.w[stage]"), HasSubstr("race"));
}

TEST(PipelineCopiesValues, NeedAlignmentForACopyOf16Bytes) {
  EXPECT_THAT(fault("sizeof(float4) ==", "sizeof(float4) >="), HasSubstr("misaligned"));
}

} // namespace
} // namespace evo
