// Peeled kernels on the CPU: every bit kept where blocks are inside, at the edges, and both.
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

class InOrder : public testing::TestWithParam<Order> {};

TEST_P(InOrder, KeepsEveryBit) {
  const std::string seed = canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
  EXPECT_THAT(test::sizes_with_other_bits(seed, followed(seed, GetParam().trail),
                                          {1, 8, 63, 64, 65, 72, 128, 131, 132}),
              testing::IsEmpty());
}

const std::pair<const Mutator*, std::string> peel{&peel_edges(), "gemm/k0 peel edges"};

const Order orders[] = {
    {"alone", {peel}},
    {"wide and staged first",
     {{&relayout_tile(), "gemm/w transpose"},
      {&load_fragments(), "gemm/k fragments"},
      {&vectorise_access(), "gemm/x fragment vector 4"},
      {&vectorise_access(), "gemm/w copy vector 4"},
      {&vectorise_access(), "gemm/x copy vector 2"},
      {&vectorise_access(), "gemm/Y store vector 4"},
      {&double_buffer(), "gemm/k0 double buffer"},
      peel}},
    {"fuse first", {{&fuse_epilogue(), "gemm/epilogue fuse update"}, peel}},
    {"reshape, unroll and lay out afterwards",
     {peel,
      {&reshape_tile(), "gemm/gemm_block_k 16"},
      {&reshape_tile(), "gemm/gemm_block_m 32"},
      {&load_fragments(), "gemm/k fragments"},
      {&vectorise_access(), "gemm/w copy vector 4"},
      {&vectorise_access(), "gemm/Y store vector 4"},
      {&relayout_tile(), "gemm/x pad 4"},
      {&unroll_loop(), "gemm/k unroll full"}}},
    {"fuse afterwards", {peel, {&fuse_epilogue(), "gemm/epilogue fuse update"}}},
};

INSTANTIATE_TEST_SUITE_P(PeelEdgesValues, InOrder, testing::ValuesIn(orders));

} // namespace
} // namespace evo
