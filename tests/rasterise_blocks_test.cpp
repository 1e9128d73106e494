// That grouped blocks take every tile of any grid once, what is refused, and what other rewrites
// make of a kernel with groups.
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Stmt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/meaning.hpp"
#include "mutators/registry.hpp"
#include "mutators/thread_block.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string golden(const std::string& name) {
  return test::read(test::in_repository("tests/mutators/rasterise_blocks") / name);
}

std::string rastered(const std::string& source, int height) {
  return test::apply(rasterise_blocks(), source, "gemm/blocks raster " + std::to_string(height));
}

class Height : public testing::TestWithParam<int> {};

TEST_P(Height, TakesEveryTileOfAnyGridOnceInColumnsOfSoManyRows) {
  const int height = GetParam();
  const Kernel kernel = test::parse(rastered(golden("before.cu"), height));
  const clang::FunctionDecl& function = *find_launches(kernel).front().kernel;
  const auto locals = const_integers(function);
  const auto local = [&](const char* name) -> const clang::Expr& {
    return *(*std::ranges::find_if(locals, [&](const auto* variable) {
              return variable->getName() == name;
            }))->getInit();
  };
  Evaluator evaluator(kernel);
  for (int rows = 1; rows <= 2 * height + 3; ++rows) {
    for (const int columns : {1, 2, 5}) {
      std::set<std::pair<std::int64_t, std::int64_t>> tiles;
      for (int block = 0; block < rows * columns; ++block) {
        const auto coordinate = [&](const char* name) {
          const auto value =
              evaluator.value(local(name), {.kernel = &function,
                                            .grid = {columns, rows, 1},
                                            .block = {},
                                            .index = {block % columns, block / columns, 0},
                                            .arguments = {}});
          return std::get<Ints>(value)[0];
        };
        const auto [row, column] = std::pair(coordinate("tile_row"), coordinate("tile_col"));
        ASSERT_TRUE(row >= 0 && row < rows && column >= 0 && column < columns);
        ASSERT_TRUE(tiles.emplace(row, column).second);
        if (rows >= height && block < height * columns) {
          ASSERT_EQ(row, block % height);
          ASSERT_EQ(column, block / height);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RasteriseBlocks, Height, testing::Values(4, 8, 16));

TEST(RasteriseBlocks, ComputesTheSameInGridsOfSeveralGroups) {
  const Kernel before = test::parse(golden("before.cu"));
  for (const int height : {4, 8}) {
    EXPECT_TRUE(same_meaning(before, test::parse(rastered(golden("before.cu"), height)),
                             {{16 * 9 + 3, 16}, {16 * 4, 16}}));
  }
}

TEST(RasteriseBlocks, ChangesTheHeightAndNothingElse) {
  for (const int height : {4, 8, 16}) {
    EXPECT_EQ(rastered(rastered(golden("before.cu"), 8), height == 8 ? 4 : height),
              rastered(golden("before.cu"), height == 8 ? 4 : height));
  }
}

struct Case {
  std::string name;
  std::string kernel;
  std::string from;
  std::string to;
};

std::ostream& operator<<(std::ostream& stream, const Case& changed) {
  return stream << changed.name;
}

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, IsProposedNoHeight) {
  const auto& [name, kernel, from, to] = GetParam();
  const std::string changed = test::replaced(golden(kernel), from, to);
  ASSERT_TRUE(test::parses(changed));
  EXPECT_THAT(test::labels(rasterise_blocks(), changed), IsEmpty());
}

const Case refusals[] = {
    {"blocks along one side", "before.cu", "ceil_div(d, gemm_block_m))", "1)"},
    {"a kernel that asks for the grid", "before.cu", "  const int thread_row",
     "  const int last = gridDim.x - 1;\n  const int thread_row"},
    {"a block's number as a whole", "before.cu", "  const int thread_row",
     "  const uint3 all = blockIdx;\n  const int thread_row"},
    {"a coordinate in a macro", "before.cu", "  const int thread_row",
     "#define LAST_ROW (blockIdx.y == 7)\n  const bool last = LAST_ROW;\n  const int thread_row"},
    {"a height that says something else too", "after.cu", "const int k = i % gemm_block_k;",
     "const int k = i % gemm_block_k + 0 * gemm_raster_m;"},
    {"a group's number that goes further", "after.cu", "Y[row * d + col] = sum[i][j];",
     "Y[row * d + col] = group == 0 ? sum[i][j] : sum[i][j];"},
    {"groups that leave a tile out", "after.cu", "group * gemm_raster_m + block",
     "group * 2 + block"},
};

INSTANTIATE_TEST_SUITE_P(RasteriseBlocks, Refused, testing::ValuesIn(refusals));

TEST(RasteriseBlocks, LeavesTheThirdCoordinateAlone) {
  const std::string source = test::replaced(golden("before.cu"), "if (row < d && col < d)",
                                            "if (blockIdx.z == 0 && row < d && col < d)");
  EXPECT_THAT(rastered(source, 4), HasSubstr("blockIdx.z == 0"));
}

/// What every mutator proposes, but for the groups, and for the halves of tiles: these come first.
std::vector<std::string> all_labels(const std::string& source) {
  std::vector<std::string> result;
  for (const Mutator* mutator : mutators()) {
    if (mutator != &rasterise_blocks() && mutator != &split_tail()) {
      std::ranges::copy(test::labels(*mutator, source), std::back_inserter(result));
    }
  }
  return result;
}

const test::Trail climb{{&relayout_tile(), "gemm/w transpose"},
                        {&load_fragments(), "gemm/k fragments"},
                        {&vectorise_access(), "gemm/x fragment vector 4"},
                        {&vectorise_access(), "gemm/x copy vector 4"},
                        {&vectorise_access(), "gemm/w copy vector 4"},
                        {&remap_threads(), "gemm/lanes 4x8"},
                        {&fuse_epilogue(), "gemm/epilogue fuse update"},
                        {&pipeline_copies(), "gemm/k0 stages 3 async x"},
                        {&peel_edges(), "gemm/k0 peel edges"}};

TEST(RasteriseBlocks, ComesFirstOrLast) {
  const std::string seed = canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
  EXPECT_EQ(all_labels(rastered(seed, 8)), all_labels(seed));
  EXPECT_EQ(rastered(test::followed(seed, climb), 8), test::followed(rastered(seed, 8), climb));
}

} // namespace
} // namespace evo
