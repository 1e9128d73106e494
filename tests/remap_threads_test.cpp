// What remap_threads refuses and accepts, one change of the seed's kernel at a time, and how it
// composes with other rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::followed;
using test::Trail;
using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;

std::string seed() {
  return canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
}

struct Case {
  std::string name;
  std::vector<std::string> labels;
  std::vector<std::pair<std::string, std::string>> replacements;
};

std::ostream& operator<<(std::ostream& stream, const Case& change) {
  return stream << change.name;
}

std::vector<std::string> proposed(const Case& change) {
  std::string source = seed();
  for (const auto& [from, to] : change.replacements) {
    source = test::replaced(source, from, to);
  }
  return test::labels(remap_threads(), source);
}

constexpr const char* lanes = "gemm/lanes 4x8";
constexpr const char* rows = "gemm/thread_row groups 2";
constexpr const char* columns = "gemm/thread_col groups 2";
constexpr const char* store = "Y[row * d + col] = sum[i][j];";
constexpr const char* row = "const int row = block_row + thread_row + i;";
constexpr const char* column = "const int col = block_col + thread_col + j;";
constexpr const char* begin =
    "const int thread_col = threadIdx.x % gemm_threads_n * gemm_thread_n;";
constexpr const char* fragment = "tiles.x[k][thread_col + j]";

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, BecauseOfOneChange) {
  const auto found = proposed(GetParam());
  for (const std::string& label : GetParam().labels) {
    EXPECT_THAT(found, Not(Contains(label)));
  }
}

const Case refusals[] = {
    {"a result depends on the thread",
     {lanes, columns},
     {{store, "Y[row * d + col] = threadIdx.x % 2 == 0 ? sum[i][j] : 0.0f;"}}},
    {"a result depends on the element's number",
     {rows, columns},
     {{store, "Y[row * d + col] = i == j ? sum[i][j] : 0.0f;"}}},
    {"threads leave early by their row",
     {rows},
     {{row, "if (thread_row > d) { return; }\n" + std::string(row)}}},
    {"a number of an element is not within the thread's",
     {columns},
     {{column,
       "const int col = block_col + thread_col + (j + gemm_thread_n) % (2 * gemm_thread_n);"}}},
    {"an element's number is written as two",
     {columns},
     {{column, "const int col = block_col + thread_col + j / 2 * 2 + j % 2;"}}},
    {"the threads' columns overlap",
     {columns},
     {{begin, "const int thread_col = threadIdx.x % gemm_threads_n * (gemm_thread_n / 2);"}}},
    {"the columns begin at one",
     {columns},
     {{begin, "const int thread_col = threadIdx.x % gemm_threads_n * gemm_thread_n + 1;"}}},
    {"the coordinate changes", {columns, lanes}, {{"const int thread_col =", "int thread_col ="}}},
    {"the kernel is launched with blocks of several sizes",
     {lanes, rows, columns},
     {{"update<<<dim3",
       "gemm<<<1, 32, sizeof(GemmTiles), stream>>>(W, X, Y, d);\n  update<<<dim3"}}},
};

INSTANTIATE_TEST_SUITE_P(RemapThreads, Refused, testing::ValuesIn(refusals));

class Accepted : public testing::TestWithParam<Case> {};

TEST_P(Accepted, InSpiteOfAChange) {
  EXPECT_THAT(proposed(GetParam()), IsSupersetOf(GetParam().labels));
}

const Case accepted[] = {
    {"nothing changes", {lanes, rows, columns}, {}},
    {"a product the other way round",
     {lanes, columns},
     {{begin, "const int thread_col = gemm_thread_n * (threadIdx.x % gemm_threads_n);"}}},
    {"a sum the other way round", {lanes, columns}, {{fragment, "tiles.x[k][j + thread_col]"}}},
    {"threadIdx.x has a name",
     {lanes, rows, columns},
     {{begin, "const int tid = threadIdx.x;\n  const int thread_col = tid % gemm_threads_n * "
              "gemm_thread_n;"}}},
    {"the column in the matrix has a name",
     {lanes, columns},
     {{column, "const int begin = block_col + thread_col;\n      const int col = begin + j;"}}},
    {"the columns are read downwards",
     {lanes, columns},
     {{fragment, "tiles.x[k][gemm_block_n - 1 - (thread_col + j)]"}}},
};

INSTANTIATE_TEST_SUITE_P(RemapThreads, Accepted, testing::ValuesIn(accepted));

const Trail wide{{&reshape_tile(), "gemm/gemm_thread_n 8"},
                 {&load_fragments(), "gemm/k fragments"},
                 {&vectorise_access(), "gemm/x fragment vector 4"},
                 {&vectorise_access(), "gemm/Y store vector 4"},
                 {&double_buffer(), "gemm/k0 double buffer"}};
const Trail remaps{{&remap_threads(), "gemm/lanes 8x4"},
                   {&remap_threads(), "gemm/thread_col groups 4"},
                   {&remap_threads(), "gemm/thread_row groups 2"}};

Trail then(Trail first, const Trail& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(RemapThreads, CommutesWithItself) {
  const Trail turned(remaps.rbegin(), remaps.rend());
  const std::string source = followed(seed(), {wide.front()});
  EXPECT_EQ(followed(source, remaps), followed(source, turned));
}

TEST(RemapThreads, CommutesWithWideAccessesAndBuffers) {
  const Trail rest(wide.begin() + 1, wide.end());
  EXPECT_EQ(followed(seed(), then(wide, remaps)),
            followed(seed(), then(then({wide.front()}, remaps), rest)));
}

TEST(RemapThreads, KeepsWholeWhatIsAccessedAtOnce) {
  const auto labels = test::labels(remap_threads(), followed(seed(), wide));
  EXPECT_THAT(labels, Contains("gemm/thread_col groups 4"));
  EXPECT_THAT(labels, Not(Contains("gemm/thread_col groups 2")));
  EXPECT_THAT(labels, Contains("gemm/thread_row groups 2"));
}

TEST(RemapThreads, GoesBackToOneGroup) {
  const std::string before = followed(seed(), {wide.front()});
  const std::string after = followed(before, {{&remap_threads(), "gemm/thread_col groups 2"},
                                              {&remap_threads(), "gemm/thread_col groups 8"}});
  EXPECT_THAT(after, testing::HasSubstr("gemm_thread_col_group = 8;"));
  EXPECT_THAT(test::labels(vectorise_access(), after), Contains("gemm/Y store vector 4"));
  EXPECT_THAT(test::labels(remap_threads(), after), Contains("gemm/thread_col groups 2"));
}

// The accumulators of mma.sync.m16n8.
const Trail fragments{{&remap_threads(), "gemm/lanes 8x4"},
                      {&remap_threads(), "gemm/thread_row groups 1 in warps"},
                      {&remap_threads(), "gemm/thread_col groups 2 in warps"}};

TEST(RemapThreads, DealsOutWarpsRowsAndColumnsInAnyOrder) {
  const Trail turned{fragments[0], fragments[2], fragments[1]};
  EXPECT_EQ(followed(seed(), fragments), followed(seed(), turned));
}

TEST(RemapThreads, MovesGroupsIntoWarps) {
  const Trail rest(fragments.begin() + 1, fragments.end());
  EXPECT_EQ(followed(seed(), then({fragments[0],
                                   {&remap_threads(), "gemm/thread_row groups 2"},
                                   {&remap_threads(), "gemm/thread_col groups 1"}},
                                  rest)),
            followed(seed(), fragments));
}

TEST(RemapThreads, HasNoWarpTileWhereAWarpSpansTheBlock) {
  const auto labels = test::labels(remap_threads(), seed());
  EXPECT_THAT(labels, Contains("gemm/thread_col groups 2"));
  EXPECT_THAT(labels, Not(Contains("gemm/thread_col groups 2 in warps")));
  EXPECT_THAT(labels, Contains("gemm/thread_row groups 2 in warps"));
}

TEST(RemapThreads, FollowsAWarpOfAnotherShape) {
  const std::string before =
      followed(seed(), then(fragments, {{&remap_threads(), "gemm/lanes 4x8"}}));
  const std::string after =
      followed(before, {{&remap_threads(), "gemm/thread_col groups 2 in warps"}});
  EXPECT_THAT(before, testing::HasSubstr("gemm_thread_col_lanes = 4;"));
  EXPECT_THAT(after, testing::HasSubstr("gemm_thread_col_lanes = 8;"));
}

TEST(RemapThreads, GoesBackFromGroupsInWarpsToOne) {
  const auto labels = test::labels(remap_threads(), followed(seed(), fragments));
  EXPECT_THAT(labels, Contains("gemm/thread_col groups 4"));
  EXPECT_THAT(labels, Contains("gemm/thread_col groups 1 in warps"));
  EXPECT_THAT(labels, Not(Contains("gemm/thread_col groups 2 in warps")));
  EXPECT_THAT(labels, Not(Contains("gemm/thread_col groups 1")));
}

TEST(RemapThreads, CommutesInWarpsWithWideAccessesAndBuffers) {
  const Trail warps{
      fragments[0], fragments[1], {&remap_threads(), "gemm/thread_col groups 4 in warps"}};
  const Trail rest(wide.begin() + 1, wide.end());
  EXPECT_EQ(followed(seed(), then(wide, warps)),
            followed(seed(), then(then({wide.front()}, warps), rest)));
}

TEST(RemapThreads, LeavesWhatOthersReshape) {
  const auto shapes = test::labels(reshape_tile(), followed(seed(), then(wide, remaps)));
  EXPECT_THAT(shapes, Contains("gemm/gemm_block_m 128"));
  EXPECT_THAT(shapes, Contains("gemm/gemm_thread_m 2"));
}

} // namespace
} // namespace evo
