// What pipeline_copies accepts and refuses, one reason at a time: the seed's kernel with a single
// change. And how it composes with other rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/analysis/meaning.hpp"
#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::Change;
using test::Trail;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* label = "gemm/k0 stages 3 async";
constexpr const char* only_x = "gemm/k0 stages 3 async x"; // w through registers

std::string seed() {
  return canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
}

std::string changed(const Change& change) {
  return test::changed(seed(), change);
}

std::string followed(const Trail& trail) {
  return test::followed(seed(), trail);
}

int occurrences(const std::string& text, const std::string& wanted) {
  int count = 0;
  for (auto at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) {
    ++count;
  }
  return count;
}

bool mean_the_same(const std::string& before, const std::string& after) {
  return same_meaning(test::parse(before), test::parse(after));
}

constexpr const char* core =
    "sum[i][j] += tiles.w[thread_row + i][k] * tiles.x[k][thread_col + j];";
constexpr const char* w_value = "W[(block_row + row) * d + k0 + k] : 0.0f;";
constexpr const char* x_value = "X[(k0 + k) * d + block_col + col] : 0.0f;";

class Refused : public testing::TestWithParam<Change> {};

TEST_P(Refused, BecauseOfOneChange) {
  EXPECT_THAT(test::labels(pipeline_copies(), changed(GetParam())), IsEmpty());
}

const Change refusals[] = {
    {"all values are computed on the way",
     {{w_value, "2.0f * W[(block_row + row) * d + k0 + k] : 0.0f;"},
      {x_value, "2.0f * X[(k0 + k) * d + block_col + col] : 0.0f;"}}},
    {"the computation writes a tile", {{core, std::string(core) + " tiles.w[0][0] = 1.0f;"}}},
    {"there is a third barrier", {{core, std::string(core) + " __syncthreads();"}}},
    {"the loads read a tile", {{"k0 + k < d ? W", "tiles.x[0][0] < 4.0f ? W"}}},
    {"the card has too little shared memory", {{"gemm_block_k = 8;", "gemm_block_k = 128;"}}},
};

INSTANTIATE_TEST_SUITE_P(PipelineCopies, Refused, testing::ValuesIn(refusals));

class ThroughRegisters : public testing::TestWithParam<Change> {};

TEST_P(ThroughRegisters, WhereATileIsNotCopied) {
  const std::string before = changed(GetParam());
  EXPECT_THAT(test::labels(pipeline_copies(), before),
              ElementsAre("gemm/k0 stages 2 async w", "gemm/k0 stages 3 async w",
                          "gemm/k0 stages 4 async w"));
  EXPECT_TRUE(
      mean_the_same(before, test::apply(pipeline_copies(), before, "gemm/k0 stages 3 async w")));
}

const Change computed[] = {
    {"a value is computed on the way",
     {{x_value, "2.0f * X[(k0 + k) * d + block_col + col] : 0.0f;"}}},
    {"what is out of range is not zero", {{x_value, "X[(k0 + k) * d + block_col + col] : 1.0f;"}}},
    {"what is out of range is a negative zero",
     {{x_value, "X[(k0 + k) * d + block_col + col] : -0.0f;"}}},
    {"it goes through a function",
     {{x_value, "fmaf(X[(k0 + k) * d + block_col + col], 1.0f, 0.0f) : 0.0f;"}}},
};

INSTANTIATE_TEST_SUITE_P(PipelineCopies, ThroughRegisters, testing::ValuesIn(computed));

TEST(PipelineCopies, OffersAsManyStagesAsFit) {
  const auto labels = [](const std::string& block_k) {
    return test::labels(pipeline_copies(),
                        changed({"", {{"gemm_block_k = 8;", "gemm_block_k = " + block_k + ";"}}}));
  };
  EXPECT_THAT(labels("8"), ElementsAre("gemm/k0 stages 2 async", "gemm/k0 stages 3 async",
                                       "gemm/k0 stages 4 async", "gemm/k0 stages 5 async",
                                       "gemm/k0 stages 2 async x", "gemm/k0 stages 3 async x",
                                       "gemm/k0 stages 4 async x", "gemm/k0 stages 2 async w",
                                       "gemm/k0 stages 3 async w", "gemm/k0 stages 4 async w"));
  EXPECT_THAT(labels("64"), ElementsAre("gemm/k0 stages 2 async", "gemm/k0 stages 3 async",
                                        "gemm/k0 stages 2 async x", "gemm/k0 stages 3 async x",
                                        "gemm/k0 stages 2 async w", "gemm/k0 stages 3 async w"));
}

TEST(PipelineCopies, IsProposedOnce) {
  for (const char* transport : {label, only_x}) {
    const std::string after = followed({{&pipeline_copies(), transport}});
    EXPECT_THAT(test::labels(pipeline_copies(), after), IsEmpty());
    EXPECT_THAT(test::labels(double_buffer(), after), IsEmpty());
  }
}

TEST(PipelineCopies, IncludesTheHeaderOnce) {
  const std::string include = "#include <cuda_pipeline.h>\n";
  const std::string after = followed({{&pipeline_copies(), label}});
  EXPECT_EQ(after.find(include), after.rfind(include));
  EXPECT_EQ(after, test::apply(pipeline_copies(),
                               canonical(test::replaced(seed(), "#include <cuda_runtime.h>\n",
                                                        include + "#include <cuda_runtime.h>\n")),
                               label));
}

TEST(PipelineCopies, TakesThroughRegistersWhatIsNotZeroOutOfRange) {
  const std::string before =
      changed({"", {{x_value, "X[(k0 + k) * d + block_col + col] : X[0];"}}});
  const auto labels = test::labels(pipeline_copies(), before);
  EXPECT_THAT(labels, ElementsAre("gemm/k0 stages 2 async w", "gemm/k0 stages 3 async w",
                                  "gemm/k0 stages 4 async w"));
  EXPECT_TRUE(mean_the_same(before, test::apply(pipeline_copies(), before, labels.back())));
}

TEST(PipelineCopies, KeepsOutOfTilesBeyondTheLastByOneBranchWithGuardsOrWithout) {
  for (const std::string& before :
       {changed({"", {}}), changed({"", {{"k0 + k < d ? W", "true ? W"}}})}) {
    for (const auto& [transport, branches] : {std::pair(label, 1), std::pair(only_x, 2)}) {
      const std::string after = test::apply(pipeline_copies(), before, transport);
      EXPECT_EQ(occurrences(after, "if (k0_next < d)"), branches) << after;
      EXPECT_TRUE(mean_the_same(before, after));
    }
  }
}

TEST(PipelineCopies, ChangesItsNumberOfStagesByReshaping) {
  for (const std::string transport : {"async", "async x"}) {
    const auto pipelined = [&](const std::string& stages) {
      return followed({{&pipeline_copies(), "gemm/k0 stages " + stages + " " + transport}});
    };
    const auto labels = test::labels(reshape_tile(), pipelined("3"));
    EXPECT_THAT(labels, Contains("gemm/gemm_stages 2"));
    EXPECT_THAT(labels, Not(Contains("gemm/gemm_stages 8")));
    EXPECT_EQ(test::apply(reshape_tile(), pipelined("3"), "gemm/gemm_stages 4"), pipelined("4"));
  }
}

TEST(PipelineCopies, MeansNothingWithoutItsWait) {
  const std::string after = followed({{&pipeline_copies(), label}});
  for (const char* wait : {"", "__pipeline_wait_prior(gemm_stages - 1);"}) {
    const std::string wrong =
        test::replaced(after, "__pipeline_wait_prior(gemm_stages - 2);", wait);
    EXPECT_TRUE(std::holds_alternative<Failure>(meaning(test::parse(wrong), {67, 16})));
  }
}

/// The rewrites before the pipeline and after it: the same kernel.
void expect_either_order(const Trail& trail, const std::string& pipeline) {
  Trail before = trail;
  before.emplace_back(&pipeline_copies(), pipeline);
  Trail after{{&pipeline_copies(), pipeline}};
  after.insert(after.end(), trail.begin(), trail.end());
  const std::string first = followed(before);
  EXPECT_TRUE(mean_the_same(seed(), first));
  EXPECT_EQ(first, followed(after));
}

class Composes : public testing::TestWithParam<Trail> {};

TEST_P(Composes, InEitherOrder) {
  expect_either_order(GetParam(), label);
}

const Trail compositions[] = {
    {{&relayout_tile(), "gemm/w transpose"}},
    {{&relayout_tile(), "gemm/w pad 4"}},
    {{&reshape_tile(), "gemm/gemm_block_m 128, gemm_thread_m 8"}},
    {{&reshape_tile(), "gemm/gemm_block_k 16"}},
    {{&unroll_loop(), "gemm/k0 unroll 2"}},
    {{&load_fragments(), "gemm/k fragments"}},
    {{&fuse_epilogue(), "gemm/epilogue fuse update"}},
    {{&launch_bounds(), "gemm/launch bounds 2"}},
    {{&fold_low_rank(), "gemm/W fold update"}},
};

TEST(PipelineCopies, ComposesInEitherOrderThroughRegisters) {
  expect_either_order({{&relayout_tile(), "gemm/w transpose"},
                       {&relayout_tile(), "gemm/w pad 4"},
                       {&reshape_tile(), "gemm/gemm_block_m 128, gemm_thread_m 8"},
                       {&reshape_tile(), "gemm/gemm_block_k 16"},
                       {&load_fragments(), "gemm/k fragments"},
                       {&launch_bounds(), "gemm/launch bounds 2"}},
                      only_x);
}

TEST(PipelineCopies, ComposesWithASwizzleAndVectors) {
  const Trail trail{{&vectorise_access(), "gemm/w copy vector 4"},
                    {&vectorise_access(), "gemm/x copy vector 4"},
                    {&relayout_tile(), "gemm/x swizzle"},
                    {&pipeline_copies(), label},
                    {&relayout_tile(), "gemm/w pad 4"}};
  EXPECT_TRUE(mean_the_same(seed(), followed(trail)));
}

/// A quotient that goes with the copies takes what it asserts along.
TEST(PipelineCopies, LeavesNoAssertionsWhereOperandsAreSplitAfterwards) {
  const std::string after = followed({{&reshape_tile(), "gemm/gemm_block_k 16"},
                                      {&remap_threads(), "gemm/lanes 8x4"},
                                      {&remap_threads(), "gemm/thread_row groups 1 in warps"},
                                      {&remap_threads(), "gemm/thread_col groups 2 in warps"},
                                      {&tensorise(), "gemm/k bf16x3"},
                                      {&pipeline_copies(), "gemm/k0 stages 3 async"},
                                      {&split_operands(), "gemm/k split beforehand"}});
  EXPECT_THAT(after, testing::Not(testing::HasSubstr("static_assert(gemm_block_m * gemm_block_k")));
  EXPECT_THAT(after, testing::Not(testing::HasSubstr("static_assert(gemm_block_k * gemm_block_n")));
}

INSTANTIATE_TEST_SUITE_P(PipelineCopies, Composes, testing::ValuesIn(compositions));

} // namespace
} // namespace evo
