// Fragments of the next step, loaded ahead: what is refused, what other rewrites still see of it,
// and the same bits before and after them on the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/goldens.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

const std::string prefetch_k = "gemm/k prefetch fragments";

std::string golden() {
  return goldens(prefetch_fragments()).front().before;
}

std::string seed() {
  return canonical(read(in_repository("seeds/lora/tiled.cu")));
}

class Refused : public testing::TestWithParam<Change> {};

TEST_P(Refused, ProposesNothing) {
  EXPECT_THAT(labels(prefetch_fragments(), changed(golden(), GetParam())), testing::IsEmpty());
}

const std::string products = "        for (int j = 0; j < gemm_thread_n; ++j) {\n"
                             "          sum[i][j] += w_fragment[i] * x_fragment[j];\n";
const Change refused[] = {
    {"one step", {{"gemm_block_k = 8", "gemm_block_k = 1"}}},
    {"too many to unroll", {{"gemm_block_k = 8", "gemm_block_k = 512"}}},
    {"begins later", {{"for (int k = 0; k < gemm_block_k", "for (int k = 1; k < gemm_block_k"}}},
    {"a barrier", {{"      float w_fragment", "      __syncthreads();\n      float w_fragment"}}},
    {"indices that the loop changes",
     {{"    for (int k = 0; k < gemm_block_k",
       "    int at = 0;\n    for (int k = 0; k < gemm_block_k"},
      {"thread_row + i][k]", "thread_row + i + at][k]"},
      {"thread_col + j]", "thread_col + j + at]"},
      {products, "        at = 0;\n" + products}}},
    {"fragments that do not depend on the step",
     {{"thread_row + i][k]", "thread_row + i][0]"}, {"tiles.x[k][", "tiles.x[0]["}}},
    {"fragments that products change",
     {{products, products + "          w_fragment[i] = 0.0f;\n          x_fragment[j] = 0.0f;\n"}}},
    {"nothing added up", {{"sum[i][j] += w", "sum[i][j] = w"}}},
};
INSTANTIATE_TEST_SUITE_P(PrefetchFragments, Refused, testing::ValuesIn(refused));

TEST(PrefetchFragments, LeavesWhatProductsChange) {
  const std::string source =
      replaced(golden(), products, products + "          x_fragment[j] = x_fragment[j] + 0.0f;\n");
  const std::string after = apply(prefetch_fragments(), source, prefetch_k);
  EXPECT_THAT(after, testing::HasSubstr("float w_fragment[2][gemm_thread_m];"));
  EXPECT_THAT(after, testing::HasSubstr("      float x_fragment[gemm_thread_n];"));
}

TEST(PrefetchFragments, IsNotRepeated) {
  EXPECT_THAT(labels(prefetch_fragments(), apply(prefetch_fragments(), golden(), prefetch_k)),
              testing::IsEmpty());
}

TEST(PrefetchFragments, TakesAnotherNameWhereTheirsIsTaken) {
  const std::string source = replaced(golden(), "    __syncthreads();\n    for (int k",
                                      "    __syncthreads();\n    const float w_fragment = 1.0f;\n"
                                      "    sum[0][0] *= w_fragment;\n    for (int k");
  const std::string after = apply(prefetch_fragments(), source, prefetch_k);
  EXPECT_TRUE(parses(after)) << after;
  EXPECT_THAT(after, testing::HasSubstr("float w_fragment_2[2][gemm_thread_m];"));
}

TEST(PrefetchFragments, KeepsWhatOthersPropose) {
  const std::string source = apply(load_fragments(), seed(), "gemm/k fragments");
  const std::string after = apply(prefetch_fragments(), source, prefetch_k);
  for (const Mutator* mutator :
       {&reshape_tile(), &double_buffer(), &pipeline_copies(), &relayout_tile(), &remap_threads(),
        &promote_sums(), &peel_edges(), &stage_epilogue()}) {
    EXPECT_EQ(labels(*mutator, after), labels(*mutator, source)) << mutator->about().name;
  }
}

// ---- on tensor cores
// ------------------------------------------------------------------------------

const Trail warps{{&load_fragments(), "gemm/k fragments"},
                  {&reshape_tile(), "gemm/gemm_block_k 32"},
                  {&remap_threads(), "gemm/lanes 8x4"},
                  {&remap_threads(), "gemm/thread_row groups 1 in warps"},
                  {&remap_threads(), "gemm/thread_col groups 2 in warps"},
                  {&tensorise(), "gemm/k bf16x3"}};

TEST(PrefetchFragments, LeavesTheNumberOfPartsToTheTensorType) {
  const std::string after =
      apply(prefetch_fragments(), followed(seed(), warps), "gemm/i#3 prefetch fragments");
  EXPECT_THAT(labels(reshape_tile(), after),
              testing::Each(testing::Not(testing::HasSubstr("parts"))));
}

// ---- bits
// ------------------------------------------------------------------------------------------

class PrefetchedOrder : public testing::TestWithParam<Order> {};

TEST_P(PrefetchedOrder, KeepsEveryBit) {
  EXPECT_THAT(sizes_with_other_bits(seed(), followed(seed(), GetParam().trail), {1, 63, 65, 131}),
              testing::IsEmpty());
}

const Order orders[] = {
    {"early",
     {{&load_fragments(), "gemm/k fragments"},
      {&prefetch_fragments(), prefetch_k},
      {&relayout_tile(), "gemm/w transpose"},
      {&vectorise_access(), "gemm/w#2 fragment vector 4"},
      {&vectorise_access(), "gemm/w fragment vector 2"},
      {&vectorise_access(), "gemm/x copy vector 4"},
      {&relayout_tile(), "gemm/w pad 4"},
      {&remap_threads(), "gemm/thread_col groups 2"},
      {&reshape_tile(), "gemm/gemm_block_k 16"},
      {&pipeline_copies(), "gemm/k0 stages 3 async x"},
      {&unroll_loop(), "gemm/k unroll 2"},
      {&peel_edges(), "gemm/k0 peel edges"}}},
    {"late",
     {{&load_fragments(), "gemm/k fragments"},
      {&relayout_tile(), "gemm/w transpose"},
      {&vectorise_access(), "gemm/w fragment vector 4"},
      {&vectorise_access(), "gemm/x fragment vector 4"},
      {&remap_threads(), "gemm/lanes 4x8"},
      {&pipeline_copies(), "gemm/k0 stages 2 async"},
      {&peel_edges(), "gemm/k0 peel edges"},
      {&prefetch_fragments(), prefetch_k},
      {&prefetch_fragments(), "gemm/k#2 prefetch fragments"}}},
    {"in both loops of a double buffer",
     {{&load_fragments(), "gemm/k fragments"},
      {&double_buffer(), "gemm/k0 double buffer"},
      {&prefetch_fragments(), prefetch_k},
      {&prefetch_fragments(), "gemm/k#2 prefetch fragments"},
      {&stage_epilogue(), "gemm/epilogue 16 rows"}}},
};
INSTANTIATE_TEST_SUITE_P(PrefetchFragments, PrefetchedOrder, testing::ValuesIn(orders));

class PrefetchedWarps : public testing::TestWithParam<Order> {};

TEST_P(PrefetchedWarps, AddTheSame) {
  const std::string before = followed(seed(), warps);
  EXPECT_EQ(
      cpu_difference_at(lora(), before, followed(before, GetParam().trail), {63, 65, 131}, false),
      "");
}

const Order warp_orders[] = {
    {"split in registers",
     {{&prefetch_fragments(), "gemm/i#3 prefetch fragments"},
      {&prefetch_fragments(), prefetch_k},
      {&pipeline_copies(), "gemm/k0 stages 3 async"}}},
    {"split beforehand",
     {{&split_operands(), "gemm/k split beforehand"},
      {&prefetch_fragments(), "gemm/i prefetch fragments"},
      {&pipeline_copies(), "gemm/k0 stages 3 async"},
      {&prefetch_fragments(), prefetch_k}}},
};
INSTANTIATE_TEST_SUITE_P(PrefetchFragments, PrefetchedWarps, testing::ValuesIn(warp_orders));

} // namespace
} // namespace evo::test
