// What persist_blocks accepts and refuses, one reason at a time, and what it computes on the CPU:
// with more tiles than blocks, alone, after and before other rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::Change;
using test::Order;
using testing::ElementsAre;
using testing::IsEmpty;

std::string seed() {
  return canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
}

std::string golden() {
  return test::read(test::in_repository("tests/mutators/persist_blocks/before.cu"));
}

TEST(PersistBlocks, OffersOneAndTwoBlocksPerMultiprocessor) {
  EXPECT_THAT(test::labels(persist_blocks(), seed()),
              ElementsAre("gemm/blocks persistent 82", "gemm/blocks persistent 164"));
}

TEST(PersistBlocks, OffersOnlyAsManyBlocksAsFindRoom) {
  const std::string large = test::replaced(golden(), "float w[gemm_block_m][gemm_block_k];",
                                           "float w[gemm_block_m][gemm_block_k];\n"
                                           "  float spare[12800];");
  EXPECT_THAT(test::labels(persist_blocks(), large), ElementsAre("gemm/blocks persistent 82"));
}

TEST(PersistBlocks, DoesNotApplyTwice) {
  const std::string once = test::apply(persist_blocks(), golden(), "gemm/blocks persistent 82");
  EXPECT_THAT(test::labels(persist_blocks(), once), IsEmpty());
}

class Refused : public testing::TestWithParam<Change> {};

TEST_P(Refused, BecauseOfOneChange) {
  const std::string source = test::changed(golden(), GetParam());
  ASSERT_TRUE(test::parses(source));
  EXPECT_THAT(test::labels(persist_blocks(), source), IsEmpty());
}

const Change refusals[] = {
    {"a block returns early",
     {{"  float sum[gemm_thread_m]", "  if (block_row >= d) {\n    return;\n  }\n"
                                     "  float sum[gemm_thread_m]"}}},
    {"it is asked for a third coordinate",
     {{"blockIdx.y * gemm_block_m", "(blockIdx.y + blockIdx.z) * gemm_block_m"}}},
    {"blockIdx is passed on",
     {{"// Y = W X\n", "__device__ int row_of(uint3 block) { return block.y; }\n// Y = W X\n"},
      {"blockIdx.y * gemm_block_m", "row_of(blockIdx) * gemm_block_m"}}},
    {"a function asks for the block",
     {{"// Y = W X\n", "__device__ int tile_above() { return blockIdx.y; }\n// Y = W X\n"},
      {"blockIdx.y * gemm_block_m", "tile_above() * gemm_block_m"}}},
    {"the grid has a name",
     {{"  gemm<<<dim3(ceil_div(d, gemm_block_n), ceil_div(d, gemm_block_m))",
       "  const dim3 grid(ceil_div(d, gemm_block_n), ceil_div(d, gemm_block_m));\n  gemm<<<grid"}}},
    {"the kernel is launched twice",
     {{"  return cudaGetLastError();",
       "  gemm<<<1, gemm_threads, sizeof(GemmTiles), stream>>>(W, X, Y, d);\n"
       "  return cudaGetLastError();"}}},
    {"what a tile leaves in shared memory is used by the next",
     {{"extern __shared__ float gemm_shared[];",
       "__shared__ int tiles_before;\n  extern __shared__ float gemm_shared[];"},
      {"  float sum[gemm_thread_m]", "  if (threadIdx.x == 0) {\n    tiles_before += 1;\n  }\n"
                                     "  float sum[gemm_thread_m]"}}},
};

INSTANTIATE_TEST_SUITE_P(PersistBlocks, Refused, testing::ValuesIn(refusals));

class InOrder : public testing::TestWithParam<Order> {};

/// With tiles of 16 rows and columns, so that there are more of them than blocks at small sizes.
std::string small_seed() {
  std::string source = seed();
  for (const char* side : {"m", "n"}) {
    source = test::replaced(std::move(source), std::string("gemm_block_") + side + " = 64;",
                            std::string("gemm_block_") + side + " = 16;");
    source = test::replaced(std::move(source), std::string("gemm_thread_") + side + " = 4;",
                            std::string("gemm_thread_") + side + " = 2;");
  }
  return source;
}

/// One tile at 1, less than a wave of them at 33, 1.2 waves at 157.
TEST_P(InOrder, KeepsEveryBit) {
  const std::string before = small_seed();
  EXPECT_THAT(
      test::sizes_with_other_bits(before, test::followed(before, GetParam().trail), {1, 33, 157}),
      IsEmpty());
}

const std::pair<const Mutator*, std::string> persistent{&persist_blocks(),
                                                        "gemm/blocks persistent 82"};

const Order orders[] = {
    {"alone", {persistent}},
    {"grouped, pipelined and peeled first",
     {{&rasterise_blocks(), "gemm/blocks raster 4"},
      {&fuse_epilogue(), "gemm/epilogue fuse update"},
      {&vectorise_access(), "gemm/w copy vector 4"},
      {&pipeline_copies(), "gemm/k0 stages 3 async"},
      {&peel_edges(), "gemm/k0 peel edges"},
      persistent}},
    {"staged first, through a tile that the next one needs",
     {{&stage_epilogue(), "gemm/epilogue 8 rows through x"},
      {&peel_edges(), "gemm/k0 peel edges"},
      persistent}},
    {"staged afterwards", {persistent, {&stage_epilogue(), "gemm/epilogue 8 rows through x"}}},
    {"laid out anew, wide and pipelined afterwards",
     {persistent,
      {&relayout_tile(), "gemm/w transpose"},
      {&load_fragments(), "gemm/k fragments"},
      {&vectorise_access(), "gemm/x copy vector 4"},
      {&pipeline_copies(), "gemm/k0 stages 3 async x"}}},
    {"double-buffered afterwards", {persistent, {&double_buffer(), "gemm/k0 double buffer"}}},
};

INSTANTIATE_TEST_SUITE_P(PersistBlocks, InOrder, testing::ValuesIn(orders));

} // namespace
} // namespace evo
