// What relayout_tile refuses and accepts, one change of the seed's kernel at a time, and how it
// composes with other rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::Change;
using testing::Contains;
using testing::Not;

std::string seed() {
  return canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
}

std::string changed(const Change& change) {
  return test::changed(seed(), change);
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
     {{core, with(core, "float4 four = reinterpret_cast<float4 &>(tiles.w[thread_row][0]); "
                        "sum[0][0] += four.x;")}}},
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
     {{core,
       with(core,
            "float4 four = reinterpret_cast<float4 &>(tiles.x[k][0]); sum[0][0] += four.x;")}}},
    {"a path needs full tiles",
     {{core, with(core, "if (d % 128 == 0) sum[0][0] += tiles.w[0][k];")}}},
    {"the size of the tile is used",
     {{kernel, "static_assert(sizeof(GemmTiles::w) == 2048);\n__global__ void gemm("}}},
};

INSTANTIATE_TEST_SUITE_P(RelayoutTile, Transposed, testing::ValuesIn(accepted));

/// The amounts that the tile's rows can be padded by.
std::vector<std::string> paddings(const std::string& source, const std::string& tile) {
  const std::string prefix = tile + " pad ";
  std::vector<std::string> amounts;
  for (const std::string& label : test::labels(relayout_tile(), source)) {
    if (label.starts_with(prefix)) {
      amounts.push_back(label.substr(prefix.size()));
    }
  }
  return amounts;
}

struct PaddingCase {
  Change change;
  std::vector<std::string> amounts; // of gemm/x
};

std::ostream& operator<<(std::ostream& stream, const PaddingCase& test) {
  return stream << test.change;
}

class Padded : public testing::TestWithParam<PaddingCase> {};

TEST_P(Padded, ByWhatIsLegal) {
  EXPECT_EQ(paddings(changed(GetParam().change), "gemm/x"), GetParam().amounts);
}

constexpr const char* x_member = "float x[gemm_block_k][gemm_block_n];";

/// Rows of 63 elements, with two read at once from an even column of the even ones.
Change odd_rows(const char* name, int column) {
  return {name,
          {{x_member, "float x[gemm_block_k][gemm_block_n - 1];"},
           {"gemm_block_k * gemm_block_n; i += gemm_threads",
            "gemm_block_k * (gemm_block_n - 1); i += gemm_threads"},
           {"i / gemm_block_n;", "i / (gemm_block_n - 1);"},
           {"i % gemm_block_n;", "i % (gemm_block_n - 1);"},
           {core, "float2 two = reinterpret_cast<float2 &>(tiles.x[k / 2 * 2][" +
                      std::to_string(column) + "]); sum[i][j] += two.y;"}}};
}

const PaddingCase padding_cases[] = {
    {{"nothing changes", {}}, {"1", "4", "8"}},
    {{"it has one already", {{x_member, "float x[gemm_block_k][gemm_block_n + 1];"}}},
     {"0", "4", "8"}},
    {{"its extent is a sum that is used",
      {{x_member, "float x[gemm_block_k][gemm_block_n - 1 + 1];"}}},
     {"1", "4", "8"}},
    {{"its rows are read several elements at once",
      {{core,
        with(core,
             "float4 four = reinterpret_cast<float4 &>(tiles.x[k][0]); sum[0][0] += four.x;")}}},
     {"4", "8"}},
    {{"its rows are read several elements at once by address",
      {{core, with(core, "float2 two = *reinterpret_cast<const float2 *>(&tiles.x[k][j / 2 * 2]);"
                         "sum[0][0] += two.x;")}}},
     {"4", "8"}},
    {odd_rows("two elements at once are of one row", 60), {"1"}},
    {odd_rows("two elements at once are not of one row", 62), {}},
    {{"its rows are written several elements at once",
      {{"i = threadIdx.x; i < gemm_block_k * gemm_block_n; i += gemm_threads",
        "i = threadIdx.x * 4; i < gemm_block_k * gemm_block_n; i += gemm_threads * 4"},
       {"tiles.x[k][col] =\n          k0 + k < d && block_col + col < d ? X[(k0 + k) * d + "
        "block_col + "
        "col] : 0.0f;",
        "*reinterpret_cast<float4 *>(&tiles.x[k][col]) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);"}}},
     {"4", "8"}},
    {{"a part of several elements at once is read",
      {{core, with(core, "sum[0][0] += reinterpret_cast<float4 &>(tiles.x[k][0]).y;")}}},
     {}},
    {{"the other tile's rows are read several elements at once",
      {{core, with(core, "float4 four = reinterpret_cast<float4 &>(tiles.w[thread_row][0]); "
                         "sum[0][0] += four.x;")}}},
     {"1", "4", "8"}},
    {{"the launch asks for a number of bytes",
      {{"sizeof(GemmTiles), stream>>>", "4096, stream>>>"}}},
     {}},
    {{"48 KiB are full and the launch does not opt in to more",
      {{"gemm_block_k = 8;", "gemm_block_k = 96;"},
       {"cudaFuncSetAttribute(gemm,", "cudaFuncSetAttribute(project,"}}},
     {}},
    {{"the card has little shared memory left", {{"gemm_block_k = 8;", "gemm_block_k = 192;"}}},
     {"1", "4"}},
    {{"an assertion needs the tiles' size",
      {{kernel, "static_assert(sizeof(GemmTiles) <= 4256);\n__global__ void gemm("}}},
     {"1", "4"}},
    {{"an assertion needs the tile's size through a constant",
      {{kernel, "constexpr int bytes = sizeof(GemmTiles::x);\nstatic_assert(bytes % 512 == 0);\n"
                "__global__ void gemm("}}},
     {}},
};

INSTANTIATE_TEST_SUITE_P(RelayoutTile, Padded, testing::ValuesIn(padding_cases));

struct SwizzleCase {
  Change change;
  std::string pattern; // of gemm/x; empty: refused
};

std::ostream& operator<<(std::ostream& stream, const SwizzleCase& test) {
  return stream << test.change;
}

class Swizzled : public testing::TestWithParam<SwizzleCase> {};

TEST_P(Swizzled, ByWhatFitsARow) {
  const std::string source = changed(GetParam().change);
  if (GetParam().pattern.empty()) {
    EXPECT_THAT(test::labels(relayout_tile(), source), Not(Contains("gemm/x swizzle")));
  } else {
    const std::string after = test::apply(relayout_tile(), source, "gemm/x swizzle");
    EXPECT_TRUE(test::parses(after));
    EXPECT_THAT(after, testing::HasSubstr("return tile_column ^ " + GetParam().pattern + ";"));
  }
}

constexpr const char* block_n = "gemm_block_n = 64;";
constexpr const char* thread_n = "gemm_thread_n = 4;";

const SwizzleCase swizzle_cases[] = {
    {{"nothing changes", {}}, "(tile_row % 8 * 4)"},
    {{"rows are padded", {{x_member, "float x[gemm_block_k][gemm_block_n + 1];"}}},
     "(tile_row % 8 * 4)"},
    {{"rows are short", {{block_n, "gemm_block_n = 8;"}}}, "(tile_row % 2 * 4)"},
    {{"rows have no two groups of four", {{block_n, "gemm_block_n = 36;"}}}, "(tile_row % 4)"},
    {{"rows are odd", {{block_n, "gemm_block_n = 33;"}, {thread_n, "gemm_thread_n = 3;"}}}, ""},
    {{"four columns are read at once",
      {{core,
        with(
            core,
            "float4 four = reinterpret_cast<float4 &>(tiles.x[k][j * 4]); sum[0][0] += four.x;")}}},
     "(tile_row % 8 * 4)"},
    {{"four columns are read at once, and rows have no two groups of four",
      {{block_n, "gemm_block_n = 36;"},
       {core,
        with(
            core,
            "float4 four = reinterpret_cast<float4 &>(tiles.x[k][j * 4]); sum[0][0] += four.x;")}}},
     ""},
    {{"an index calls a function",
      {{kernel, "__device__ int same(int k) { return k; }\n__global__ void gemm("},
       {"tiles.x[k][thread_col + j]", "tiles.x[same(k)][thread_col + j]"}}},
     ""},
};

INSTANTIATE_TEST_SUITE_P(RelayoutTile, Swizzled, testing::ValuesIn(swizzle_cases));

using test::Trail;

std::string followed(const Trail& trail) {
  return test::followed(seed(), trail);
}

TEST(RelayoutTile, UndoesATransposition) {
  for (const char* label : {"gemm/w transpose", "gemm/x transpose"}) {
    const std::string once = followed({{&relayout_tile(), label}});
    EXPECT_NE(once, seed());
    EXPECT_EQ(test::apply(relayout_tile(), once, label), seed());
  }
}

TEST(RelayoutTile, UndoesAPadding) {
  const std::string eight =
      followed({{&relayout_tile(), "gemm/w pad 4"}, {&relayout_tile(), "gemm/w pad 8"}});
  EXPECT_EQ(eight, followed({{&relayout_tile(), "gemm/w pad 8"}}));
  EXPECT_EQ(test::apply(relayout_tile(), eight, "gemm/w pad 0"), seed());
}

TEST(RelayoutTile, LeavesAConstantAloneThatOthersUse) {
  const std::string shared = changed(
      {"",
       {{"constexpr int gemm_threads_n", "constexpr int pad = 1;\nconstexpr int gemm_threads_n"},
        {members, "float w[gemm_block_m][gemm_block_k + pad];"},
        {x_member, "float x[gemm_block_k][gemm_block_n + pad];"}}});
  const std::string w = test::apply(relayout_tile(), shared, "gemm/w pad 0");
  EXPECT_THAT(w, testing::HasSubstr("float w[gemm_block_m][gemm_block_k];"));
  EXPECT_THAT(w, testing::HasSubstr("float x[gemm_block_k][gemm_block_n + pad];"));
  const std::string both = test::apply(relayout_tile(), shared, "gemm/w pad 4");
  EXPECT_THAT(both, testing::HasSubstr("float w[gemm_block_m][gemm_block_k + gemm_w_pad];"));
  EXPECT_THAT(both, testing::HasSubstr("constexpr int pad = 1;"));
}

TEST(RelayoutTile, GivesATileOfTwoLoopsOneLabel) {
  std::string source = seed();
  const std::size_t begin = source.find("  for (int k0 = 0;");
  const std::size_t end =
      source.find("  for (int i = 0; i < gemm_thread_m", source.find("\n  }\n", begin));
  const std::string loop = source.substr(begin, end - begin);
  std::vector<std::string> labels = test::labels(relayout_tile(), source.insert(begin, loop));
  EXPECT_THAT(labels, Contains("gemm/w transpose"));
  std::ranges::sort(labels);
  EXPECT_EQ(std::ranges::adjacent_find(labels), labels.end());
}

/// Each order of a relayout and another rewrite gives one kernel.
class Commutes : public testing::TestWithParam<std::pair<const Mutator*, std::string>> {};

TEST_P(Commutes, WithTransposingAndPadding) {
  const auto& [mutator, other] = GetParam();
  for (const char* label : {"gemm/w transpose", "gemm/w pad 4", "gemm/x pad 1"}) {
    SCOPED_TRACE(label);
    if (other != label) {
      EXPECT_EQ(followed({{mutator, other}, {&relayout_tile(), label}}),
                followed({{&relayout_tile(), label}, {mutator, other}}));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RelayoutTile, Commutes,
                         testing::Values(std::pair(&relayout_tile(), "gemm/x transpose"),
                                         std::pair(&relayout_tile(), "gemm/w pad 4"),
                                         std::pair(&double_buffer(), "gemm/k0 double buffer"),
                                         std::pair(&fuse_epilogue(), "gemm/epilogue fuse update"),
                                         std::pair(&unroll_loop(), "gemm/k unroll full"),
                                         std::pair(&reshape_tile(), "gemm/gemm_block_k 16")));

TEST(RelayoutTile, LeavesAloneWhatMeetsNoConflicts) {
  const std::string split =
      test::followed(seed(), {{&reshape_tile(), "gemm/gemm_block_k 16"},
                              {&remap_threads(), "gemm/lanes 8x4"},
                              {&remap_threads(), "gemm/thread_row groups 1 in warps"},
                              {&remap_threads(), "gemm/thread_col groups 2 in warps"},
                              {&tensorise(), "gemm/k bf16x3"},
                              {&split_operands(), "gemm/k split beforehand"}});
  EXPECT_THAT(test::labels(relayout_tile(), split), testing::IsEmpty());
}

} // namespace
} // namespace evo
