// What stage_epilogue accepts and refuses, one reason at a time, and what it computes on the CPU:
// in a tile of the reduction and in one of its own, alone, before and after other rewrites.
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
  return test::read(test::in_repository("tests/mutators/stage_epilogue/before.cu"));
}

TEST(StageEpilogue, OffersTheTileWithMostRoomAndSomeOfItsOwn) {
  EXPECT_THAT(test::labels(stage_epilogue(), seed()),
              ElementsAre("gemm/epilogue 8 rows through x", "gemm/epilogue 16 rows",
                          "gemm/epilogue 32 rows", "gemm/epilogue 64 rows"));
}

TEST(StageEpilogue, OffersNoTileThatIsTooNarrow) {
  const std::string transposed = test::apply(relayout_tile(), golden(), "gemm/x transpose");
  EXPECT_THAT(test::labels(stage_epilogue(), transposed),
              ElementsAre("gemm/epilogue 16 rows", "gemm/epilogue 32 rows"));
}

TEST(StageEpilogue, OffersNoTileThatSharedMemoryHasNoRoomFor) {
  std::string source = golden();
  source = test::replaced(source, "float w[gemm_block_m][gemm_block_k];",
                          "float w[gemm_block_m][gemm_block_k];\n  float spare[11264];");
  EXPECT_THAT(test::labels(stage_epilogue(), source),
              ElementsAre("gemm/epilogue 8 rows through x"));
}

TEST(StageEpilogue, DoesNotStageTwice) {
  const std::string staged = test::apply(stage_epilogue(), golden(), "gemm/epilogue 16 rows");
  EXPECT_THAT(test::labels(stage_epilogue(), staged), IsEmpty());
}

class Refused : public testing::TestWithParam<Change> {};

TEST_P(Refused, BecauseOfOneChange) {
  const std::string source = test::changed(golden(), GetParam());
  ASSERT_TRUE(test::parses(source));
  EXPECT_THAT(test::labels(stage_epilogue(), source), IsEmpty());
}

const Change refusals[] = {
    {"the old result is added to", {{"= sum[i][j];", "+= sum[i][j];"}}},
    {"the loops' counters decide what is stored",
     {{"if (row < d && col < d) {", "if (row < d && col < d && i + j < 6) {"}}},
    {"columns overlap", {{"thread_col + j;", "thread_col + j / 2;"}}},
    {"columns are left out", {{"thread_col + j;", "thread_col + 2 * j;"}}},
    {"the coordinates are products of the block's part",
     {{"const int row = block_row + thread_row + i;",
       "const int row = (blockIdx.y * gemm_threads_n + threadIdx.x / gemm_threads_n) * "
       "gemm_thread_m + i;"}}},
    {"the rows have no names",
     {{"Y[row * d + col] = sum", "Y[(block_row + thread_row + i) * d + col] = sum"}}},
    {"blocks differ in shape",
     {{"  return cudaGetLastError();",
       "  gemm<<<1, dim3(8, 8), sizeof(GemmTiles), stream>>>(W, X, Y, d);\n"
       "  return cudaGetLastError();"}}},
};

INSTANTIATE_TEST_SUITE_P(StageEpilogue, Refused, testing::ValuesIn(refusals));

class InOrder : public testing::TestWithParam<Order> {};

TEST_P(InOrder, KeepsEveryBit) {
  EXPECT_THAT(test::sizes_with_other_bits(seed(), test::followed(seed(), GetParam().trail),
                                          {1, 63, 65, 131, 132}),
              IsEmpty());
}

const std::pair<const Mutator*, std::string> through_x{&stage_epilogue(),
                                                       "gemm/epilogue 8 rows through x"};
const std::pair<const Mutator*, std::string> of_its_own{&stage_epilogue(), "gemm/epilogue 32 rows"};
const std::pair<const Mutator*, std::string> wide{&vectorise_access(), "gemm/Y store vector 4"};
const std::pair<const Mutator*, std::string> peeled{&peel_edges(), "gemm/k0 peel edges"};

const Order orders[] = {
    {"through a tile, then wide", {through_x, wide, peeled}},
    {"wide, then through a tile", {wide, peeled, through_x}},
    {"in one go", {{&stage_epilogue(), "gemm/epilogue 64 rows"}, wide}},
    {"with the low-rank sum, before all others",
     {{&fuse_epilogue(), "gemm/epilogue fuse update"},
      of_its_own,
      {&relayout_tile(), "gemm/w transpose"},
      {&load_fragments(), "gemm/k fragments"},
      {&remap_threads(), "gemm/lanes 4x8"},
      {&vectorise_access(), "gemm/w copy vector 4"},
      {&vectorise_access(), "gemm/x copy vector 4"},
      wide,
      {&pipeline_copies(), "gemm/k0 stages 3 async x"},
      peeled,
      {&rasterise_blocks(), "gemm/blocks raster 4"}}},
    {"with the low-rank sum, after all others",
     {{&fuse_epilogue(), "gemm/epilogue fuse update"},
      {&remap_threads(), "gemm/thread_col groups 2"},
      {&vectorise_access(), "gemm/x copy vector 4"},
      {&pipeline_copies(), "gemm/k0 stages 4 async x"},
      peeled,
      {&relayout_tile(), "gemm/x pad 4"},
      {&rasterise_blocks(), "gemm/blocks raster 4"},
      {&stage_epilogue(), "gemm/epilogue 32 rows through x"}}},
    {"before the tile is laid out anew and reshaped",
     {through_x,
      {&relayout_tile(), "gemm/x swizzle"},
      {&reshape_tile(), "gemm/gemm_block_n 128, gemm_thread_n 8"}}},
    {"double-buffered afterwards", {through_x, {&double_buffer(), "gemm/k0 double buffer"}}},
    {"pipelined afterwards",
     {through_x,
      {&vectorise_access(), "gemm/x copy vector 4"},
      wide,
      {&pipeline_copies(), "gemm/k0 stages 3 async x"},
      peeled}},
};

INSTANTIATE_TEST_SUITE_P(StageEpilogue, InOrder, testing::ValuesIn(orders));

TEST(StageEpilogue, KeepsEveryBitBehindTwoLoops) {
  const std::string before =
      test::followed(seed(), {{&fuse_epilogue(), "gemm/epilogue fuse update"},
                              {&extend_reduction(), "gemm/k0 extend by update_sum"}});
  EXPECT_THAT(test::sizes_with_other_bits(before, test::followed(before, {of_its_own, wide}),
                                          {1, 63, 65, 131, 132}),
              IsEmpty());
}

class OfTensorCores : public testing::TestWithParam<Order> {};

/// Pairs of results per thread, eight rows of them per warp.
TEST_P(OfTensorCores, KeepsEveryBit) {
  const std::string before =
      test::followed(seed(), {{&reshape_tile(), "gemm/gemm_block_k 16"},
                              {&remap_threads(), "gemm/lanes 8x4"},
                              {&remap_threads(), "gemm/thread_row groups 1 in warps"},
                              {&remap_threads(), "gemm/thread_col groups 2 in warps"},
                              {&tensorise(), "gemm/k bf16x3"}});
  EXPECT_EQ(test::cpu_difference_at(test::lora(), before, test::followed(before, GetParam().trail),
                                    {63, 132}, true),
            "");
}

const std::pair<const Mutator*, std::string> pairs{&vectorise_access(), "gemm/Y store vector 2"};

const Order tensor_orders[] = {
    {"pairs through a tile", {pairs, {&stage_epilogue(), "gemm/epilogue 16 rows through x"}}},
    {"of operands that are split beforehand, then persistent",
     {{&split_operands(), "gemm/k split beforehand"},
      of_its_own,
      {&vectorise_access(), "gemm/staged copy vector 2"},
      wide,
      {&pipeline_copies(), "gemm/k0 stages 3 async"},
      {&persist_blocks(), "gemm/blocks persistent 82"}}},
    {"pairs of operands that are split beforehand",
     {{&split_operands(), "gemm/k split beforehand"}, pairs, of_its_own}},
};

INSTANTIATE_TEST_SUITE_P(StageEpilogue, OfTensorCores, testing::ValuesIn(tensor_orders));

} // namespace
} // namespace evo
