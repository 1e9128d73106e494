// Transposed matrices in the workspace on the CPU: every bit of what they were, at sizes around the
// tile, also where copies of them are wide.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

std::string folded() {
  return followed(canonical(read(in_repository("seeds/lora/tiled.cu"))),
                  {{&fold_low_rank(), "gemm/W fold update"},
                   {&reshape_tile(), "gemm/gemm_block_m 32, gemm_block_n 32"}});
}

TEST(RelayoutMatrixValues, KeepEveryBitInWideAccesses) {
  const std::string source = folded();
  const Trail trail{{&relayout_matrix(), "gemm/folded transpose"},
                    {&relayout_tile(), "gemm/w transpose"},
                    {&load_fragments(), "gemm/k fragments"},
                    {&vectorise_access(), "gemm/w copy vector 4"},
                    {&vectorise_access(), "gemm/x copy vector 4"},
                    {&vectorise_access(), "fold/folded store vector 4"},
                    {&relayout_matrix(), "gemm/folded pitch 4"},
                    {&pipeline_copies(), "gemm/k0 stages 3 async"}};
  EXPECT_THAT(sizes_with_other_bits(source, followed(source, trail), {31, 33, 67, 68}),
              testing::IsEmpty());
}

TEST(RelayoutMatrixValues, KeepEveryBitInCopiesThroughRegisters) {
  const std::string source = folded();
  const Trail trail{{&double_buffer(), "gemm/k0 double buffer"},
                    {&relayout_matrix(), "gemm/folded transpose"}};
  EXPECT_THAT(sizes_with_other_bits(source, followed(source, trail), {31, 33, 67}),
              testing::IsEmpty());
}

} // namespace
} // namespace evo::test
