// What tensorise refuses, and how it composes with other rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::followed;
using test::Trail;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Trail then(Trail first, const Trail& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The golden's kernel, whose accumulators lie as those of mma.sync do.
std::string laid_out() {
  return canonical(test::read(test::in_repository("tests/mutators/tensorise/before.cu")));
}

const Trail tensorised{{&tensorise(), "multiply/k bf16x3"}};

TEST(Tensorise, OffersEveryStrategy) {
  EXPECT_THAT(test::labels(tensorise(), laid_out()),
              ElementsAre("multiply/k bf16x1", "multiply/k bf16x3", "multiply/k bf16x6",
                          "multiply/k fp16x1", "multiply/k fp16x3", "multiply/k tf32x1",
                          "multiply/k tf32x3"));
}

TEST(Tensorise, TakesTf32WhereKIsTooShortForOthers) {
  EXPECT_THAT(
      test::labels(tensorise(), test::replaced(laid_out(), "int block_k = 32", "int block_k = 8")),
      ElementsAre("multiply/k tf32x1", "multiply/k tf32x3"));
}

// From the seed's layout on; without the warp's tile there are no groups in warps of columns.
TEST(Tensorise, NeedsTheAccumulatorsOfTheInstruction) {
  const std::string seed = canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
  const Trail lanes{{&remap_threads(), "gemm/lanes 8x4"}};
  const Trail rows{{&remap_threads(), "gemm/thread_row groups 1 in warps"}};
  const Trail columns{{&remap_threads(), "gemm/thread_col groups 2 in warps"}};
  const auto offered = [&](const Trail& trail) {
    return test::labels(tensorise(), followed(seed, trail));
  };
  EXPECT_THAT(offered(then(lanes, columns)), IsEmpty());
  EXPECT_THAT(offered(then(lanes, rows)), IsEmpty());
  EXPECT_THAT(offered(then(then(lanes, rows), columns)),
              ElementsAre("gemm/k tf32x1", "gemm/k tf32x3"));
}

TEST(Tensorise, LeavesTheLayoutToReshapedTiles) {
  const auto labels = test::labels(reshape_tile(), followed(laid_out(), tensorised));
  EXPECT_THAT(labels, Contains("multiply/block_m 64"));
  EXPECT_THAT(labels, Contains("multiply/thread_n 8"));
  EXPECT_THAT(labels, Not(Contains("multiply/thread_m 1")));
  EXPECT_THAT(labels, Not(Contains(HasSubstr("multiply_parts"))));
}

TEST(Tensorise, ChangesTypeAndParts) {
  const std::string bf16 = followed(laid_out(), tensorised);
  EXPECT_THAT(test::labels(tensorise(), bf16),
              ElementsAre("multiply/k bf16x1", "multiply/k bf16x6", "multiply/k fp16x1",
                          "multiply/k fp16x3"));
  for (const char* label : {"multiply/k bf16x6", "multiply/k fp16x1", "multiply/k fp16x3"}) {
    EXPECT_EQ(test::apply(tensorise(), bf16, label), test::apply(tensorise(), laid_out(), label));
  }
}

// An instruction's rows may be any rows, but the columns of a lane's sums are not those that it
// loads.
TEST(Tensorise, LeavesRowsAloneToOtherThreads) {
  const auto labels = test::labels(remap_threads(), followed(laid_out(), tensorised));
  EXPECT_THAT(labels, Each(HasSubstr("/thread_row groups ")));
}

void expect_commutes(const std::string& source, const Trail& trail, const Trail& products) {
  EXPECT_EQ(followed(source, then(products, trail)), followed(source, then(trail, products)));
}

TEST(Tensorise, CommutesWithBuffersAndLayouts) {
  expect_commutes(laid_out(), {{&double_buffer(), "multiply/k0 double buffer"}}, tensorised);
  expect_commutes(
      laid_out(),
      {{&relayout_tile(), "multiply/w transpose"}, {&relayout_tile(), "multiply/w pad 4"}},
      tensorised);
}

TEST(Tensorise, CommutesWithWideAsynchronousCopies) {
  const Trail copies{{&vectorise_access(), "multiply/w copy vector 4"},
                     {&vectorise_access(), "multiply/x copy vector 4"},
                     {&vectorise_access(), "multiply/Y store vector 2"},
                     {&relayout_tile(), "multiply/w pad 8"},
                     {&relayout_tile(), "multiply/x pad 4"},
                     {&pipeline_copies(), "multiply/k0 stages 3 async"},
                     {&launch_bounds(), "multiply/launch bounds 2"},
                     {&peel_edges(), "multiply/k0 peel edges"}};
  expect_commutes(laid_out(), copies, tensorised);
}

TEST(Tensorise, CommutesWithAFusedUpdate) {
  const std::string seed =
      followed(canonical(test::read(test::in_repository("seeds/lora/tiled.cu"))),
               {{&remap_threads(), "gemm/lanes 8x4"},
                {&remap_threads(), "gemm/thread_row groups 1 in warps"},
                {&remap_threads(), "gemm/thread_col groups 2 in warps"}});
  expect_commutes(seed, {{&fuse_epilogue(), "gemm/epilogue fuse update"}},
                  {{&tensorise(), "gemm/k tf32x3"}});
}

TEST(Tensorise, TakesFragmentsInAllCopiesOfTheCore) {
  const Trail buffered{{&load_fragments(), "multiply/k fragments"},
                       {&double_buffer(), "multiply/k0 double buffer"}};
  const std::string plain = followed(laid_out(), then({buffered.back()}, tensorised));
  EXPECT_EQ(followed(laid_out(), then(buffered, tensorised)), plain);
}

} // namespace
} // namespace evo
