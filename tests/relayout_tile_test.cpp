// What relayout_tile refuses and accepts, one change of the seed's kernel at a time, and how it
// composes with other rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using testing::Contains;
using testing::Not;

struct Change {
  std::string name;
  std::vector<std::pair<std::string, std::string>> replacements;
};

std::ostream& operator<<(std::ostream& stream, const Change& change) {
  return stream << change.name;
}

std::string seed() {
  return canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
}

std::string changed(const Change& change) {
  std::string source = seed();
  for (const auto& [from, to] : change.replacements) {
    const std::size_t at = source.find(from);
    if (at == std::string::npos) {
      throw std::runtime_error("the seed has no '" + from + "'");
    }
    source.replace(at, from.size(), to);
  }
  return source;
}

std::string with(const char* text, const std::string& more) {
  return text + (" " + more);
}

constexpr const char* view = "GemmTiles &tiles = *reinterpret_cast<GemmTiles *>(gemm_shared);";
constexpr const char* members = "float w[gemm_block_m][gemm_block_k];";
constexpr const char* fragment = "tiles.w[thread_row + i][k]";
constexpr const char* core =
    "sum[i][j] += tiles.w[thread_row + i][k] * tiles.x[k][thread_col + j];";
constexpr const char* kernel = "__global__ void gemm(";

class NotTransposed : public testing::TestWithParam<Change> {};

TEST_P(NotTransposed, BecauseOfOneChange) {
  EXPECT_THAT(test::labels(relayout_tile(), changed(GetParam())),
              Not(Contains("gemm/w transpose")));
}

const Change refusals[] = {
    {"an index runs on into the next row",
     {{fragment, "tiles.w[thread_row][i * gemm_block_k + k]"}}},
    {"a row's address is taken", {{fragment, "(&tiles.w[thread_row + i][0])[k]"}}},
    {"a row is a pointer", {{fragment, "(tiles.w[thread_row + i] + 0)[k]"}}},
    {"a row is handed to a function",
     {{kernel,
       "__device__ float at(const float *row, int k) { return row[k]; }\n__global__ void gemm("},
      {fragment, "at(tiles.w[thread_row + i], k)"}}},
    {"several elements are read at once",
     {{core, with(core, "sum[0][0] += reinterpret_cast<float4 &>(tiles.w[thread_row][0]).x;")}}},
    {"an index has an effect", {{core, with(core, "int n = 0; sum[0][0] += tiles.w[n++][n];")}}},
    {"an access is never reached", {{core, with(core, "if (d == 7) sum[0][0] = tiles.w[0][0];")}}},
    {"an access depends on data", {{core, with(core, "sum[0][0] += tiles.w[int(sum[0][0])][0];")}}},
    {"the struct is copied", {{core, with(core, "GemmTiles copy = tiles;")}}},
    {"the struct's address is taken",
     {{core, with(core, "sum[0][0] += reinterpret_cast<float *>(&tiles)[0];")}}},
    {"the struct is handed to a function",
     {{kernel, "__device__ float at(GemmTiles &t, int r, int k) { return t.w[r][k]; }\n"
               "__global__ void gemm("},
      {fragment, "at(tiles, thread_row + i, k)"}}},
    {"another kernel uses the struct",
     {{kernel,
       "__global__ void other(GemmTiles *t) { t->w[0][0] = 0.0f; }\n__global__ void gemm("}}},
    {"the dynamic memory is seen twice",
     {{view, with(view, "float *other = gemm_shared; Y[0] = other[3];")}}},
    {"the size of a row is used",
     {{kernel, "static_assert(sizeof(GemmTiles::w[0]) == 32);\n__global__ void gemm("}}},
    {"the extents stand in an alias",
     {{"struct GemmTiles", "using Row = float[gemm_block_k];\nstruct GemmTiles"},
      {members, "Row w[gemm_block_m];"}}},
    {"the extents stand in a macro",
     {{"struct GemmTiles", "#define EXTENTS [gemm_block_m][gemm_block_k]\nstruct GemmTiles"},
      {members, "float w EXTENTS;"}}},
    {"an access stands in a macro",
     {{"struct GemmTiles", "#define AT(r, k) tiles.w[r][k]\nstruct GemmTiles"},
      {fragment, "AT(thread_row + i, k)"}}},
    {"the kernel is not launched", {{"gemm<<<dim3(", "update<<<dim3("}}},
};

INSTANTIATE_TEST_SUITE_P(RelayoutTile, NotTransposed, testing::ValuesIn(refusals));

class Transposed : public testing::TestWithParam<Change> {};

TEST_P(Transposed, InSpiteOfAChange) {
  const std::string source = changed(GetParam());
  EXPECT_TRUE(test::parses(test::apply(relayout_tile(), source, "gemm/w transpose")));
}

const Change accepted[] = {
    {"nothing changes", {}},
    {"the struct is seen by a pointer",
     {{view, "GemmTiles *tiles = reinterpret_cast<GemmTiles *>(gemm_shared);"},
      {"tiles.w[row]", "tiles->w[row]"},
      {"tiles.x[k][col]", "tiles->x[k][col]"},
      {core, "sum[i][j] += tiles->w[thread_row + i][k] * tiles->x[k][thread_col + j];"}}},
    {"the other tile is read several at once",
     {{core, with(core, "sum[0][0] += reinterpret_cast<float4 &>(tiles.x[k][0]).x;")}}},
    {"a path needs full tiles",
     {{core, with(core, "if (d % 128 == 0) sum[0][0] += tiles.w[0][k];")}}},
    {"the size of the tile is used",
     {{kernel, "static_assert(sizeof(GemmTiles::w) == 2048);\n__global__ void gemm("}}},
};

INSTANTIATE_TEST_SUITE_P(RelayoutTile, Transposed, testing::ValuesIn(accepted));

TEST(RelayoutTile, UndoesATransposition) {
  for (const char* label : {"gemm/w transpose", "gemm/x transpose"}) {
    const std::string once = test::apply(relayout_tile(), seed(), label);
    EXPECT_NE(once, seed());
    EXPECT_EQ(test::apply(relayout_tile(), once, label), seed());
  }
}

} // namespace
} // namespace evo
