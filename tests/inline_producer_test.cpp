// What inline_producer accepts and refuses, what it leaves to other rewrites, and what it computes
// on the CPU: every bit of what two kernels did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string golden(const std::string& name) {
  return read(in_repository("tests/mutators/inline_producer") / name);
}

class Refused : public testing::TestWithParam<Change> {};

TEST_P(Refused, BecauseOfOneChange) {
  EXPECT_THAT(labels(inline_producer(), changed(golden("before.cu"), GetParam())), IsEmpty());
}

const Change refusals[] = {
    {"a sum goes on from row to row",
     {{"float fragment[rank];", "float fragment[rank];\n    float sum = 0.0f;"},
      {"        float sum = 0.0f;\n", ""}}},
    {"the value depends on the thread", {{"+ sum;", "+ (threadIdx.x < 7 ? sum : 0.0f);"}}},
    {"the value depends on the step", {{"+ sum;", "+ (step < 2 ? sum : 0.0f);"}}},
    {"the matrix has another pitch",
     {{"stream>>>(folded, Y, d);", "stream>>>(folded, Y, d + 1);"}}},
    {"an element is stored twice", {{"+ sum;", "+ sum;\n        folded[col * d + row] = sum;"}}},
    {"elements are read four at a time",
     {{"first + i < d ? matrix[row * d + first + i] : 0.0f;",
       "d % 4 == 0 && first + i < d ? reinterpret_cast<const float4 *>(&matrix[row * d + "
       "first])->x "
       ": 0.0f;"}}},
    {"the matrix is not the workspace's",
     {{"B, W, folded, d);", "B, W, Y, d);"}, {"(folded, Y", "(Y, folded"}}},
    {"another kernel writes in between",
     {{"  pack<<<", "  fold<<<1, 1, 0, stream>>>(A, B, W, folded, d);\n  pack<<<"}}},
};

INSTANTIATE_TEST_SUITE_P(InlineProducer, Refused, testing::ValuesIn(refusals));

class Inlined : public testing::TestWithParam<Change> {};

TEST_P(Inlined, WhateverTheyLookLike) {
  EXPECT_THAT(labels(inline_producer(), changed(golden("before.cu"), GetParam())),
              ElementsAre("pack/fold inline"));
}

const Change shapes[] = {
    {"one row for each thread",
     {{"step < fold_rows", "step < 1"},
      {"(d + fold_rows - 1) / fold_rows", "d"},
      {"blockIdx.y * fold_rows + step", "blockIdx.y + step"}}},
    {"without the fragment", {{"* fragment[k]", "* B[col * rank + k]"}}},
    {"early returns",
     {{"if (col < d) {\n    float", "if (col >= d) {\n    return;\n  }\n  {\n    float"}}},
    {"columns by rows", {{"matrix[row * d + first + i]", "matrix[(first + i) * d + row]"}}},
    {"a read without a guard of its own",
     {{"first + i < d ? matrix[row * d + first + i] : 0.0f;",
       "matrix[row * d + (first + i < d ? first + i : d - 1)];"}}},
    {"a read into a scalar",
     {{"values[i] = first + i < d ? matrix", "const float value = first + i < d ? matrix"},
      {": 0.0f;\n", ": 0.0f;\n    values[i] = value;\n"}}},
    {"no old matrix", {{"= W[row * d + col] + sum;", "= W[row] + sum;"}}},
};

INSTANTIATE_TEST_SUITE_P(InlineProducer, Inlined, testing::ValuesIn(shapes));

/// The seed with its low-rank term folded and its operands split.
const std::string& split() {
  static const std::string source =
      followed(canonical(read(in_repository("seeds/lora/tiled.cu"))),
               {{&fold_low_rank(), "gemm/W fold update"},
                {&reshape_tile(), "gemm/gemm_block_k 16"},
                {&remap_threads(), "gemm/lanes 8x4"},
                {&remap_threads(), "gemm/thread_row groups 1 in warps"},
                {&remap_threads(), "gemm/thread_col groups 2 in warps"},
                {&tensorise(), "gemm/k bf16x3"},
                {&split_operands(), "gemm/k split beforehand"}});
  return source;
}

const Trail inlined{{&inline_producer(), "split_w/fold inline"}};

Trail then(Trail first, const Trail& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(InlineProducer, KeepsEveryBit) {
  const std::string source = split();
  const Trail wide{{&vectorise_access(), "split_w/W load vector 4"},
                   {&vectorise_access(), "split_w/A load vector 4"}};
  EXPECT_THAT(
      sizes_with_other_bits(source, followed(source, then(inlined, wide)), {63, 67, 68, 131}),
      IsEmpty());
}

TEST(InlineProducer, LeavesNothingOfTheProducer) {
  const std::string after = followed(split(), inlined);
  EXPECT_THAT(after, Not(HasSubstr("fold_rows")));
  EXPECT_THAT(after, Not(HasSubstr("fold<<<")));
  EXPECT_THAT(after, HasSubstr("gemm_words(int d, int r) { return 0; }"));
}

TEST(InlineProducer, ComesBeforeOrAfterWhatDoesNotConcernTheReads) {
  for (const Trail& other : std::vector<Trail>{
           {{&vectorise_access(), "gemm/Y store vector 2"}},
           {{&pipeline_copies(), "gemm/k0 stages 3 async"}},
           {{&launch_bounds(), "gemm/launch bounds 2"}},
           {{&tensorise(), "gemm/k bf16x6"}},
           {{&cache_hints(), "split_x/X loads read-only"}},
           {{&rasterise_blocks(), "gemm/blocks raster 4"}},
           {{&promote_sums(), "gemm/k0 promote every 128"}},
       }) {
    EXPECT_EQ(followed(split(), then(inlined, other)), followed(split(), then(other, inlined)))
        << other.front().second;
  }
}

// The producer's own loads may be wide already; the consumer's may be so afterwards.
TEST(InlineProducer, TakesWideLoadsOfTheProducerAlong) {
  const Trail wide{{&vectorise_access(), "fold/B load vector 4"}};
  EXPECT_THAT(followed(split(), then(wide, inlined)), HasSubstr("const float4 *>(&B[col * rank"));
  EXPECT_THAT(labels(vectorise_access(), followed(split(), inlined)),
              testing::IsSupersetOf({"split_w/W load vector 4", "split_w/A load vector 4"}));
  const Trail read_wide{{&vectorise_access(), "split_w/W load vector 4"}};
  EXPECT_THAT(labels(inline_producer(), followed(split(), read_wide)), IsEmpty());
}

// A tile of the product is read by every block along its row.
TEST(InlineProducer, LeavesAMatrixThatIsReadOverAndOver) {
  EXPECT_THAT(
      labels(inline_producer(), followed(canonical(read(in_repository("seeds/lora/tiled.cu"))),
                                         {{&fold_low_rank(), "gemm/W fold update"}})),
      IsEmpty());
}

} // namespace
} // namespace evo::test
