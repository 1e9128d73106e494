// Which tests peel_edges takes out of the interior path and which it leaves, one change of the
// kernel at a time, and what other rewrites make of a peeled kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/analysis/meaning.hpp"
#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* peel = "gemm/k0 peel edges";

std::string golden(const std::string& name) {
  return test::read(test::in_repository("tests/mutators/peel_edges") / name);
}

/// The interior path of a peeled kernel, up to where the edges begin.
std::string interior(const std::string& peeled) {
  const std::size_t begin = peeled.find("const bool interior");
  return peeled.substr(begin, peeled.find("\n  } else {\n") - begin);
}

struct Case {
  std::string name;
  std::string from;
  std::string to;
  std::string left; // in the interior path: the test or a part of the condition that changes
};

std::ostream& operator<<(std::ostream& stream, const Case& changed) {
  return stream << changed.name;
}

class Peeled : public testing::TestWithParam<Case> {};

TEST_P(Peeled, TestsWhatIsLeft) {
  const auto& [name, from, to, left] = GetParam();
  const std::string source = golden("before.cu");
  const std::string plain = interior(test::apply(peel_edges(), source, peel));
  ASSERT_THAT(plain, Not(HasSubstr(left)));
  const std::string changed = test::replaced(source, from, to);
  EXPECT_THAT(interior(test::apply(peel_edges(), changed, peel)), HasSubstr(left));
}

constexpr const char* w_row = "block_row + row < d && k0 + k < d";
constexpr const char* k_loop = "for (int k0 = 0; k0 < d; k0 += gemm_block_k)";

const Case cases[] = {
    {"a halo around the tile", w_row, "block_row + row + 1 < d && k0 + k < d",
     "block_row + row + 1 < d ?"},
    {"a step more than a tile", w_row, "block_row + row < d && k0 + gemm_block_k + k < d",
     "k0 + gemm_block_k < d ?"},
    {"a bound that only the data size tells", w_row, "block_row + row < d && k0 + k < 24",
     "k0 + k < 24"},
    {"a bound that is no size", w_row, "block_row + row < d && k0 + k < d / 2", "k0 + k < d / 2 ?"},
    {"twice the row", w_row, "block_row + 2 * row < d && k0 + k < d", "block_row + 2 * row < d ?"},
    {"rows that other blocks share", "const int block_row = blockIdx.y * gemm_block_m;",
     "const int block_row = blockIdx.y * (gemm_block_m - 1);", "block_row + row < d ?"},
    {"an origin that threads do not share", "const int block_row = blockIdx.y * gemm_block_m;",
     "const int block_row = blockIdx.y * gemm_block_m + threadIdx.x / 128;",
     "block_row + row < d ?"},
    {"an origin that changes", "const int block_row = blockIdx.y * gemm_block_m;",
     "int block_row = blockIdx.y * gemm_block_m; block_row += 0;", "block_row + row < d ?"},
    {"k tiles that begin later", k_loop, "for (int k0 = 1; k0 < d; k0 += gemm_block_k)",
     "k0 + k < d"},
    {"part of a test that has two", "if (row < d && col < d)", "if (row < d || col < d)",
     "if (row < d || col < d)"},
};

INSTANTIATE_TEST_SUITE_P(PeelEdges, Peeled, testing::ValuesIn(cases));

TEST(PeelEdges, WritesTheOriginWhereItHasNoName) {
  const std::string source =
      test::replaced(golden("before.cu"), w_row, "blockIdx.y * gemm_block_m + row < d");
  EXPECT_THAT(interior(test::apply(peel_edges(), source, peel)),
              HasSubstr("blockIdx.y * gemm_block_m + gemm_block_m <= d"));
}

TEST(PeelEdges, RefusesASecondTime) {
  for (const char* name : {"after.cu", "after_staged.cu", "after_pipeline.cu"}) {
    EXPECT_THAT(test::labels(peel_edges(), golden(name)), IsEmpty()) << name;
  }
}

TEST(PeelEdges, RefusesToDeclareSharedMemoryTwice) {
  const std::string source =
      test::replaced(golden("before_pipeline.cu"), "  const int row = block_row + thread_row;",
                     "  __shared__ float unused[4];\n  const int row = block_row + thread_row;");
  ASSERT_TRUE(test::parses(source));
  EXPECT_THAT(test::labels(peel_edges(), source), IsEmpty());
}

TEST(PeelEdges, RefusesWhatIsWrittenInAMacro) {
  std::string source = golden("before.cu");
  for (const char* guard : {w_row, "k0 + k < d && block_col + col < d"}) {
    source = test::replaced(source, guard, "GUARD(" + std::string(guard) + ")");
  }
  source =
      test::replaced(source, "// One tile", "#define GUARD(condition) (condition)\n// One tile");
  ASSERT_TRUE(test::parses(source));
  EXPECT_THAT(test::labels(peel_edges(), source), IsEmpty());
}

/// Sizes at which every block is inside, some are, none is.
const std::vector<std::vector<std::int64_t>> sizes{{32, 16}, {40, 16}, {37, 16}};

/// With tiles for these sizes.
std::string seed() {
  std::string source = test::read(test::in_repository("seeds/lora/tiled.cu"));
  for (const char* constant : {"gemm_block_m = ", "gemm_block_n = "}) {
    source = test::replaced(source, constant + std::string("64"), constant + std::string("32"));
  }
  return canonical(source);
}

TEST(PeelEdges, MeaningSeesWhatTheInteriorPathTouches) {
  const std::string before = golden("before.cu");
  const std::string after = test::apply(peel_edges(), before, peel);
  EXPECT_TRUE(same_meaning(test::parse(before), test::parse(after), sizes));
  // Rows behind the matrix times rows of zeros: only the bounds tell.
  for (const auto& [from, to] : {std::pair{"d % gemm_block_k == 0", "d >= gemm_block_k"},
                                 {"block_row + gemm_block_m <= d", "block_row < d"},
                                 {"block_col + gemm_block_n <= d", "block_col < d"}}) {
    EXPECT_FALSE(
        same_meaning(test::parse(before), test::parse(test::replaced(after, from, to)), sizes))
        << from;
  }
  std::string reads_only =
      test::replaced(before, "block_row + row < d && k0 + k < d ? W", "block_row + row < d ? W");
  EXPECT_FALSE(same_meaning(test::parse(before), test::parse(reads_only), {{37, 16}}));
}

TEST(PeelEdges, EveryLaterRewriteKeepsTheMeaning) {
  const std::string peeled = test::apply(peel_edges(), seed(), peel);
  const Kernel parsed = test::parse(peeled);
  for (const Mutator* mutator : mutators()) {
    const test::Proposals proposals(*mutator, peeled);
    const auto labels = proposals.labels();
    const std::size_t stride = std::max<std::size_t>(1, labels.size() / 4);
    for (std::size_t i = 0; i < labels.size(); i += stride) {
      EXPECT_TRUE(same_meaning(parsed, test::parse(proposals.apply(labels[i])), sizes))
          << mutator->about().name << ": " << labels[i];
    }
  }
}

/// But split_tail, whose sums end at limits of their own.
TEST(PeelEdges, ComesAfterEveryOtherRewrite) {
  for (const Mutator* mutator : mutators()) {
    const test::Proposals proposals(*mutator, seed());
    const auto labels = proposals.labels();
    if (mutator == &peel_edges() || mutator == &split_tail() || labels.empty()) {
      continue;
    }
    EXPECT_THAT(test::labels(peel_edges(), proposals.apply(labels.front())),
                Contains(StartsWith("gemm/k0")))
        << mutator->about().name << ": " << labels.front();
  }
}

} // namespace
} // namespace evo
