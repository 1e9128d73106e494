// What split_tail accepts and refuses, one reason at a time, and what it computes on the CPU: full
// waves and split tiles beside each other, alone and after other rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::Change;
using test::Order;
using test::Trail;
using testing::ElementsAre;
using testing::IsEmpty;

std::string seed() {
  return canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
}

TEST(SplitTail, OffersOneAndTwoBlocksPerMultiprocessor) {
  EXPECT_THAT(test::labels(split_tail(), seed()),
              ElementsAre("gemm/k0 split tail 82", "gemm/k0 split tail 164"));
}

class Refused : public testing::TestWithParam<Change> {};

TEST_P(Refused, BecauseOfOneChange) {
  const std::string source = test::read(test::in_repository("tests/mutators/split_tail/before.cu"));
  EXPECT_THAT(test::labels(split_tail(), test::changed(source, GetParam())), IsEmpty());
}

const Change refusals[] = {
    {"more than the sum is stored", {{"= sum[i][j];", "= sum[i][j] + W[row * d + col];"}}},
    {"the sum is added to what is there", {{"= sum[i][j];", "+= sum[i][j];"}}},
    {"the sum begins in the middle", {{"int k0 = 0;", "int k0 = gemm_block_k;"}}},
    {"the sum has a constant length", {{"k0 < d; k0", "k0 < 4096; k0"}}},
    {"the grid is asked for",
     {{"blockIdx.y * gemm_block_m", "blockIdx.y % gridDim.y * gemm_block_m"}}},
    {"rows of tiles overlap", {{"blockIdx.y * gemm_block_m", "blockIdx.y / 1 * gemm_block_m"}}},
    {"the grid has a name",
     {{"  gemm<<<dim3(ceil_div(d, gemm_block_n), ceil_div(d, gemm_block_m))",
       "  const dim3 grid(ceil_div(d, gemm_block_n), ceil_div(d, gemm_block_m));\n  gemm<<<grid"}}},
    {"the kernel is launched twice",
     {{"  return cudaGetLastError();",
       "  gemm<<<1, gemm_threads, sizeof(GemmTiles), stream>>>(W, X, Y, d);\n"
       "  return cudaGetLastError();"}}},
};

INSTANTIATE_TEST_SUITE_P(SplitTail, Refused, testing::ValuesIn(refusals));

class InOrder : public testing::TestWithParam<Order> {};

/// With smaller tiles, so that there are waves of them at small sizes.
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

/// Tiles of 16 rows and columns: at 157 and 160, 100 tiles are one wave and 18 more, the last two
/// rows of which are split; at 33 all are, at 1 there are no two tiles of k.
TEST_P(InOrder, ComputesTheSame) {
  const std::string before = small_seed();
  EXPECT_EQ(test::cpu_difference_at(test::lora(), before, test::followed(before, GetParam().trail),
                                    {1, 33, 157, 160}, false),
            "");
}

const std::pair<const Mutator*, std::string> split{&split_tail(), "gemm/k0 split tail 82"};

const Order orders[] = {
    {"alone", {split}},
    {"pipelined and peeled first",
     {{&pipeline_copies(), "gemm/k0 stages 3 async"},
      {&peel_edges(), "gemm/k0 peel edges"},
      split}},
    {"pipelined afterwards", {split, {&pipeline_copies(), "gemm/k0 stages 3 async"}}},
    {"grouped afterwards", {split, {&rasterise_blocks(), "gemm/blocks raster 4"}}},
    {"double-buffered afterwards", {split, {&double_buffer(), "gemm/k0 double buffer"}}},
};

INSTANTIATE_TEST_SUITE_P(SplitTail, InOrder, testing::ValuesIn(orders));

} // namespace
} // namespace evo
