#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/analysis/meaning.hpp"
#include "mutators/mutator.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

const Mutator& fold_low_rank() {
  return *find_mutator("fold_low_rank");
}

std::string seed(const std::string& name) {
  return canonical(read(in_repository("seeds/lora") / name));
}

/// A proposal in the middle of all that a mutator makes; empty if there is none.
std::string some_child(const Mutator& mutator, const std::string& source) {
  const Proposals proposals(mutator, source);
  const std::vector<std::string> all = proposals.labels();
  return all.empty() ? "" : proposals.apply(all[all.size() / 2]);
}

/// split_tail leaves launches that are not in a straight line.
bool takes_the_fold_away(const Mutator& mutator) {
  return &mutator == &fold_low_rank() || mutator.about().name == "fuse_epilogue" ||
         mutator.about().name == "split_tail";
}

/// The project and update kernels were all that it could tile, or fuse.
bool has_nothing_left(const Mutator& mutator) {
  return &mutator == &fold_low_rank() || mutator.about().name == "fuse_epilogue" ||
         mutator.about().name == "tile_reduction";
}

TEST(FoldLowRank, AppliesAfterEveryOtherRewriteOfTheSeeds) {
  for (const char* name : {"naive.cu", "tiled.cu"}) {
    for (const Mutator* mutator : mutators()) {
      const std::string child =
          takes_the_fold_away(*mutator) ? "" : some_child(*mutator, seed(name));
      if (!child.empty()) {
        EXPECT_EQ(labels(fold_low_rank(), child).size(), 1U)
            << name << ": " << mutator->about().name;
      }
    }
  }
}

TEST(FoldLowRank, TakesTheTilesOfTheProjectionAway) {
  const std::string tiled = apply(*find_mutator("tile_reduction"), seed("tiled.cu"),
                                  "project/k tile 16x32x64, 2x2 per thread");
  const std::string folded = apply(fold_low_rank(), tiled, "gemm/W fold update");
  EXPECT_EQ(folded, apply(fold_low_rank(), seed("tiled.cu"), "gemm/W fold update"));
}

TEST(FoldLowRank, LeavesTheMultiplicationToEveryOtherRewrite) {
  const std::string folded = apply(fold_low_rank(), seed("tiled.cu"), "gemm/W fold update");
  for (const Mutator* mutator : mutators()) {
    if (has_nothing_left(*mutator)) {
      EXPECT_THAT(labels(*mutator, folded), IsEmpty()) << mutator->about().name;
      continue;
    }
    const std::string child = some_child(*mutator, folded);
    if (some_child(*mutator, seed("tiled.cu")).empty()) { // it wants another tile, say
      continue;
    }
    ASSERT_NE(child, "") << mutator->about().name;
    EXPECT_TRUE(same_meaning(parse(seed("tiled.cu")), parse(child), {{67, 16}, {80, 16}}))
        << mutator->about().name;
  }
}

TEST(FoldLowRank, TakesSeveralRowsPerThreadWhereTheRowIsTheBlocks) {
  EXPECT_THAT(apply(fold_low_rank(), seed("tiled.cu"), "gemm/W fold update"),
              HasSubstr("blockIdx.y * fold_rows + fold_row"));
}

TEST(FoldLowRank, KeepsTheGeometryOfOtherUpdates) {
  std::string source = seed("tiled.cu");
  source = replaced(source,
                    "const int row = blockIdx.y;\n  if (col < d) {\n    float sum = 0.0f;\n"
                    "    for (int k = 0; k < rank",
                    "const int row = blockIdx.y * 4 + threadIdx.y;\n  if (row < d && col < d) {\n"
                    "    float sum = 0.0f;\n    for (int k = 0; k < rank");
  source = replaced(source, "update<<<dim3(ceil_div(d, update_threads), d), update_threads, 0",
                    "update<<<dim3(ceil_div(d, update_threads), ceil_div(d, 4)), "
                    "dim3(update_threads, 4), 0");
  EXPECT_THAT(apply(fold_low_rank(), source, "gemm/W fold update"),
              testing::AllOf(Not(HasSubstr("fold_rows")), HasSubstr("threadIdx.y")));
}

TEST(FoldLowRank, FollowsTheLayoutOfTheFactor) {
  // B: rank x d
  const std::string transposed = replaced(seed("tiled.cu"), "B[k * rank + row]", "B[row * d + k]");
  EXPECT_THAT(apply(fold_low_rank(), transposed, "gemm/W fold update"),
              HasSubstr("fold_fragment[k] = B[k * d + col]"));
}

TEST(FoldLowRank, WritesOtherUpdatesDownRight) {
  const std::string minus =
      replaced(seed("tiled.cu"), "Y[row * d + col] += sum", "Y[row * d + col] -= sum + sum");
  EXPECT_THAT(apply(fold_low_rank(), minus, "gemm/W fold update"),
              HasSubstr("folded[row * d + col] = W[row * d + col] - (sum + sum);"));
  const std::string plain = replaced(seed("tiled.cu"), "Y[row * d + col] += sum",
                                     "Y[row * d + col] = sum + Y[row * d + col]");
  EXPECT_THAT(apply(fold_low_rank(), plain, "gemm/W fold update"),
              HasSubstr("folded[row * d + col] = sum + W[row * d + col];"));
}

TEST(FoldLowRank, RefusesWhatIsNoSuchTerm) {
  for (const auto& [right, wrong] : std::vector<std::pair<std::string, std::string>>{
           {"B[k * rank + row] * X[k * d + col]", "B[k * rank + row] * X[col * d + k]"},
           {"B[k * rank + row] * X[k * d + col]", "B[k * rank + row] * X[k * d + col] * X[col]"},
           {"T[row * d + col] = sum;", "T[row * d + col] = fmaxf(sum, 0.0f);"},
           {"T[row * d + col] = sum;", "T[row * d + col] = sum + 1.0f;"},
           {"A[row * rank + k] * T[k * d + col]", "A[row * rank + k] * T[k * d + row]"},
           {"Y[row * d + col] += sum", "Y[row * d + col] *= sum"},
           {"return sizeof(float) * r * d;", "const size_t n = r * d; return sizeof(float) * n;"},
       }) {
    EXPECT_THAT(labels(fold_low_rank(), replaced(seed("tiled.cu"), right, wrong)), IsEmpty())
        << wrong;
  }
}

TEST(Mutators, ThatChangeTheOrderOfRoundingSaySo) {
  std::vector<std::string_view> found;
  for (const Mutator* mutator : mutators()) {
    if (!mutator->about().keeps_order) {
      found.push_back(mutator->about().name);
    }
  }
  EXPECT_THAT(found,
              UnorderedElementsAre("fold_low_rank", "tensorise", "promote_sums", "extend_reduction",
                                   "split_tail", "sum_through_output", "slice_operands"));
}

} // namespace
} // namespace evo::test
