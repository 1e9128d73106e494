// Kernels with wide accesses on the CPU: every bit kept, also of reals, where rows are aligned and
// where they are not, alone and among other rewrites in any order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::followed;
using test::Order;
using test::Trail;

std::string seed() {
  return canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
}

void expect_same_bits(const std::string& before, const std::string& after) {
  EXPECT_THAT(test::sizes_with_other_bits(before, after, {1, 4, 7, 8, 63, 64, 66, 68, 129}),
              testing::IsEmpty());
}

const Trail all_wide{{&load_fragments(), "gemm/k fragments"},
                     {&vectorise_access(), "gemm/x fragment vector 4"},
                     {&vectorise_access(), "gemm/w copy vector 4"},
                     {&vectorise_access(), "gemm/x copy vector 2"},
                     {&vectorise_access(), "gemm/Y store vector 4"}};

TEST(VectoriseAccessValues, KeepEveryBit) {
  expect_same_bits(seed(), followed(seed(), all_wide));
}

TEST(VectoriseAccessValues, KeepEveryBitOfATransposedTile) {
  std::string source = seed();
  const std::pair<std::string, std::string> changes[] = {
      {"w[gemm_block_m][gemm_block_k]", "w[gemm_block_k][gemm_block_m]"},
      {"tiles.w[row][k]", "tiles.w[k][row]"},
      {"tiles.w[thread_row + i][k]", "tiles.w[k][thread_row + i]"}};
  for (const auto& [from, to] : changes) {
    source.replace(source.find(from), from.size(), to);
  }
  expect_same_bits(seed(), followed(source, {{&load_fragments(), "gemm/k fragments"},
                                             {&vectorise_access(), "gemm/w copy vector 4"},
                                             {&vectorise_access(), "gemm/w fragment vector 4"}}));
}

class InOrder : public testing::TestWithParam<Order> {};

TEST_P(InOrder, KeepsEveryBit) {
  expect_same_bits(seed(), followed(seed(), GetParam().trail));
}

Trail then(Trail first, const Trail& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

const Order orders[] = {
    {"then reshape", then(all_wide, {{&reshape_tile(), "gemm/gemm_thread_n 8"}})},
    {"then double buffer", then(all_wide, {{&double_buffer(), "gemm/k0 double buffer"}})},
    {"then unroll", then(all_wide, {{&unroll_loop(), "gemm/k unroll full"}})},
    {"reshape first",
     then({{&reshape_tile(), "gemm/gemm_block_m 128, gemm_thread_m 8"}}, all_wide)},
    {"unroll first", then({{&unroll_loop(), "gemm/k unroll full"}}, all_wide)},
    {"double buffer first",
     {{&double_buffer(), "gemm/k0 double buffer"},
      {&load_fragments(), "gemm/k fragments"},
      {&load_fragments(), "gemm/k#2 fragments"},
      {&vectorise_access(), "gemm/x fragment vector 4"},
      {&vectorise_access(), "gemm/w copy vector 4"},
      {&vectorise_access(), "gemm/w copy vector 2"},
      {&vectorise_access(), "gemm/x#2 copy vector 2"}}},
    {"larger tiles double-buffered first",
     {{&reshape_tile(), "gemm/gemm_block_k 16"},
      {&relayout_tile(), "gemm/w transpose"},
      {&double_buffer(), "gemm/k0 double buffer"},
      {&vectorise_access(), "gemm/w#2 copy vector 4"},
      {&vectorise_access(), "gemm/x#2 copy vector 4"}}},
    {"fuse first",
     {{&fuse_epilogue(), "gemm/epilogue fuse update"},
      {&vectorise_access(), "gemm/Y store vector 4"}}},
    {"transpose first",
     {{&relayout_tile(), "gemm/w transpose"},
      {&load_fragments(), "gemm/k fragments"},
      {&vectorise_access(), "gemm/w fragment vector 4"},
      {&vectorise_access(), "gemm/w copy vector 4"}}},
};

INSTANTIATE_TEST_SUITE_P(VectoriseAccessValues, InOrder, testing::ValuesIn(orders));

} // namespace
} // namespace evo
