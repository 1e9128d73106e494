// What sum_through_output accepts and refuses, one reason at a time, and what several pieces
// compute on the CPU, before and after other rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/analysis/meaning.hpp"
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

/// With pieces so short that a small matrix has several.
std::string in_short_pieces(const std::string& source) {
  return test::replaced(source, "gemm_piece = 512;", "gemm_piece = 64;");
}

TEST(SumThroughOutput, OffersThreeLengths) {
  EXPECT_THAT(
      test::labels(sum_through_output(), seed()),
      ElementsAre("gemm/k0 pieces of 512", "gemm/k0 pieces of 1024", "gemm/k0 pieces of 2048"));
}

TEST(SumThroughOutput, OffersTheOtherLengthsAfterwards) {
  const std::string pieces = test::apply(sum_through_output(), seed(), "gemm/k0 pieces of 512");
  EXPECT_THAT(test::labels(sum_through_output(), pieces),
              ElementsAre("gemm/k0 pieces of 1024", "gemm/k0 pieces of 2048"));
  EXPECT_EQ(test::apply(sum_through_output(), pieces, "gemm/k0 pieces of 1024"),
            test::apply(sum_through_output(), seed(), "gemm/k0 pieces of 1024"));
}

TEST(SumThroughOutput, MakesPiecesOfWholeSteps) {
  const std::string steps = test::replaced(seed(), "gemm_block_k = 8;", "gemm_block_k = 24;");
  EXPECT_THAT(test::labels(sum_through_output(), steps), IsEmpty());
}

class Refused : public testing::TestWithParam<Change> {};

TEST_P(Refused, BecauseOfOneChange) {
  const std::string source =
      test::read(test::in_repository("tests/mutators/sum_through_output/before.cu"));
  EXPECT_THAT(test::labels(sum_through_output(), test::changed(source, GetParam())), IsEmpty());
}

const Change refusals[] = {
    {"more than the sum is stored", {{"= sum[i][j];", "= sum[i][j] + W[row * d + col];"}}},
    {"the sum is scaled", {{"= sum[i][j];", "= 2.0f * sum[i][j] + 1.0f;"}}},
    {"the sum is added to what is there", {{"= sum[i][j];", "+= sum[i][j];"}}},
    {"the sum begins with something else",
     {{"[gemm_thread_n] = {};", "[gemm_thread_n] = {{1.0f}};"}}},
    {"the sum begins in the middle", {{"int k0 = 0;", "int k0 = gemm_block_k;"}}},
    {"the sum has a constant length", {{"k0 < d; k0", "k0 < 4096; k0"}}},
    {"the count is a long one", {{"int k0 = 0;", "long k0 = 0;"}}},
    {"the sum is stored twice",
     {{"  for (int i = 0; i < gemm_thread_m; ++i) {\n    for (int j = 0; j "
       "< gemm_thread_n; ++j) {\n      const int row",
       "  Y[0] = sum[0][0];\n  for (int i = 0; i < gemm_thread_m; ++i) "
       "{\n    for (int j = 0; j < gemm_thread_n; ++j) {\n      const "
       "int row"}}},
};

INSTANTIATE_TEST_SUITE_P(SumThroughOutput, Refused, testing::ValuesIn(refusals));

// Whoever proves a rewrite at small sizes sees one piece alone.
TEST(SumThroughOutput, MakesOthersKeepEveryPiece) {
  const std::string source =
      test::apply(sum_through_output(),
                  test::read(test::in_repository("tests/mutators/sum_through_output/before.cu")),
                  "gemm/k0 pieces of 512");
  const Kernel before = test::parse(in_short_pieces(source));
  for (const Mutator* mutator : mutators()) {
    const test::Proposals proposals(*mutator, source);
    for (const std::string& label : proposals.labels()) {
      if (mutator != &sum_through_output()) {
        EXPECT_TRUE(
            same_meaning(before, test::parse(in_short_pieces(proposals.apply(label))), {{67, 16}}))
            << mutator->about().name << ": " << label;
      }
    }
  }
}

class InOrder : public testing::TestWithParam<Order> {};

/// With smaller tiles, so that there are several at small sizes.
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

TEST_P(InOrder, ComputesTheSame) {
  const std::string before = small_seed();
  EXPECT_EQ(test::cpu_difference_at(test::lora(), before,
                                    in_short_pieces(test::followed(before, GetParam().trail)),
                                    {1, 17, 68, 131}, false),
            "");
}

const std::pair<const Mutator*, std::string> pieces{&sum_through_output(), "gemm/k0 pieces of 512"};

const Order orders[] = {
    {"alone", {pieces}},
    {"pipelined, wide and split first",
     {{&vectorise_access(), "gemm/Y store vector 2"},
      {&pipeline_copies(), "gemm/k0 stages 3 async"},
      {&split_tail(), "gemm/k0 split tail 82"},
      pieces}},
    {"wide, pipelined and split afterwards",
     {pieces,
      {&vectorise_access(), "gemm/Y load vector 2"},
      {&vectorise_access(), "gemm/Y store vector 2"},
      {&pipeline_copies(), "gemm/k0 stages 3 async"},
      {&split_tail(), "gemm/k0 split tail 82"}}},
    {"double-buffered afterwards", {pieces, {&double_buffer(), "gemm/k0 double buffer"}}},
    {"persistent first", {{&persist_blocks(), "gemm/blocks persistent 82"}, pieces}},
};

INSTANTIATE_TEST_SUITE_P(SumThroughOutput, InOrder, testing::ValuesIn(orders));

} // namespace
} // namespace evo
