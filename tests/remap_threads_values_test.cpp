// Threads that compute other outputs, on the CPU: every bit kept, alone and among other rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::Order;
using test::Trail;

std::string seed() {
  return canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
}

class InOrder : public testing::TestWithParam<Order> {};

TEST_P(InOrder, KeepsEveryBit) {
  EXPECT_THAT(test::sizes_with_other_bits(seed(), test::followed(seed(), GetParam().trail),
                                          {1, 7, 63, 64, 65, 131}),
              testing::IsEmpty());
}

const Order orders[] = {
    {"alone",
     {{&remap_threads(), "gemm/lanes 8x4"},
      {&remap_threads(), "gemm/thread_row groups 1"},
      {&remap_threads(), "gemm/thread_col groups 2"}}},
    {"then wide, buffered and reshaped",
     {{&reshape_tile(), "gemm/gemm_thread_n 8"},
      {&remap_threads(), "gemm/lanes 16x2"},
      {&remap_threads(), "gemm/thread_col groups 4"},
      {&load_fragments(), "gemm/k fragments"},
      {&vectorise_access(), "gemm/x fragment vector 4"},
      {&vectorise_access(), "gemm/Y store vector 4"},
      {&double_buffer(), "gemm/k0 double buffer"},
      {&reshape_tile(), "gemm/gemm_block_m 128"}}},
    {"in warps",
     {{&remap_threads(), "gemm/lanes 8x4"},
      {&remap_threads(), "gemm/thread_row groups 1 in warps"},
      {&remap_threads(), "gemm/thread_col groups 2 in warps"},
      {&load_fragments(), "gemm/k fragments"},
      {&double_buffer(), "gemm/k0 double buffer"},
      {&reshape_tile(), "gemm/gemm_thread_n 8"},
      {&remap_threads(), "gemm/lanes 4x8"}}},
    {"fused, unrolled and laid out anew first",
     {{&fuse_epilogue(), "gemm/epilogue fuse update"},
      {&relayout_tile(), "gemm/w transpose"},
      {&relayout_tile(), "gemm/w swizzle"},
      {&unroll_loop(), "gemm/k unroll full"},
      {&remap_threads(), "gemm/lanes 4x8"},
      {&remap_threads(), "gemm/lanes 2x16"},
      {&remap_threads(), "gemm/thread_row groups 2"},
      {&remap_threads(), "gemm/thread_row groups 4"}}},
};

INSTANTIATE_TEST_SUITE_P(RemapThreadsValues, InOrder, testing::ValuesIn(orders));

} // namespace
} // namespace evo
