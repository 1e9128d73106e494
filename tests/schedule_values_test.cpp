// Blocks in another order and hints for the caches, on the CPU: every bit kept, alone and among
// other rewrites, in grids of several groups. And what adds in another order adds the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::Order;
using test::Trail;

class InOrder : public testing::TestWithParam<Order> {};

TEST_P(InOrder, KeepsEveryBit) {
  const std::string seed = canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
  EXPECT_THAT(test::sizes_with_other_bits(seed, test::followed(seed, GetParam().trail),
                                          {1, 63, 65, 131, 64 * 5 + 4}),
              testing::IsEmpty());
}

const Order orders[] = {
    {"all at once",
     {{&rasterise_blocks(), "project/blocks raster 8"},
      {&rasterise_blocks(), "gemm/blocks raster 4"},
      {&fuse_epilogue(), "gemm/epilogue fuse update"},
      {&cache_hints(), "gemm/W loads read-only"},
      {&cache_hints(), "gemm/X loads read-only"},
      {&cache_hints(), "gemm/Y stores streaming"}}},
    {"among wide accesses, copies and edges",
     {{&rasterise_blocks(), "gemm/blocks raster 4"},
      {&cache_hints(), "gemm/W loads read-only"},
      {&fuse_epilogue(), "gemm/epilogue fuse update"},
      {&relayout_tile(), "gemm/w transpose"},
      {&vectorise_access(), "gemm/w copy vector 4"},
      {&cache_hints(), "gemm/Y stores streaming"},
      {&vectorise_access(), "gemm/x copy vector 4"},
      {&vectorise_access(), "gemm/Y store vector 4"},
      {&pipeline_copies(), "gemm/k0 stages 3 async x"},
      {&peel_edges(), "gemm/k0 peel edges"}}},
};

INSTANTIATE_TEST_SUITE_P(ScheduleValues, InOrder, testing::ValuesIn(orders));

TEST(ScheduleValues, APromotedReductionAddsTheSame) {
  const std::string seed = canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
  const Trail trail{{&vectorise_access(), "gemm/x copy vector 4"},
                    {&pipeline_copies(), "gemm/k0 stages 3 async x"},
                    {&promote_sums(), "gemm/k0 promote every 64"},
                    {&unroll_loop(), "gemm/k unroll full"}};
  EXPECT_EQ(test::cpu_difference_at(test::lora(), seed, test::followed(seed, trail), {63, 64, 131},
                                    false),
            "");
}

TEST(ScheduleValues, AnExtendedReductionAddsTheSame) {
  const std::string seed = canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
  const Trail trail{{&fuse_epilogue(), "gemm/epilogue fuse update"},
                    {&relayout_tile(), "gemm/w transpose"},
                    {&load_fragments(), "gemm/k fragments"},
                    {&vectorise_access(), "gemm/w copy vector 4"},
                    {&vectorise_access(), "gemm/x copy vector 4"},
                    {&extend_reduction(), "gemm/k0 extend by update_sum"},
                    {&rasterise_blocks(), "gemm/blocks raster 4"},
                    {&remap_threads(), "gemm/lanes 4x8"},
                    {&peel_edges(), "gemm/k0 peel edges"}};
  EXPECT_EQ(test::cpu_difference_at(test::lora(), seed, test::followed(seed, trail),
                                    {1, 63, 65, 128, 131}, extend_reduction().about().keeps_order),
            "");
}

} // namespace
} // namespace evo
