// What vectorise_access and load_fragments refuse, one reason at a time: the seed's kernel with a
// single change. And how they compose with other rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;

using Replacements = std::vector<std::pair<std::string, std::string>>;
using test::Trail;

std::string replaced(std::string source, const Replacements& replacements) {
  for (const auto& [from, to] : replacements) {
    source = test::replaced(std::move(source), from, to);
  }
  return source;
}

std::string seed() {
  return test::read(test::in_repository("seeds/lora/tiled.cu"));
}

std::string followed(const std::string& source, const Trail& trail) {
  return test::followed(canonical(source), trail);
}

std::string with_fragments() {
  return followed(seed(), {{&load_fragments(), "gemm/k fragments"}});
}

struct Case {
  std::string name;
  std::string label; // what is proposed without the change
  Replacements replacements;
};

std::ostream& operator<<(std::ostream& stream, const Case& refused) {
  return stream << refused.name;
}

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, BecauseOfOneChange) {
  const auto& [name, label, replacements] = GetParam();
  ASSERT_THAT(test::labels(vectorise_access(), with_fragments()), Contains(label));
  const std::string source = replaced(with_fragments(), replacements);
  ASSERT_TRUE(test::parses(source));
  EXPECT_THAT(test::labels(vectorise_access(), source), Not(Contains(label)));
}

constexpr const char* fragment = "gemm/x fragment vector 4";
constexpr const char* w_copy = "gemm/w copy vector 4";
constexpr const char* x_copy = "gemm/x copy vector 4";
constexpr const char* store = "gemm/Y store vector 4";
constexpr const char* x_read = "x_fragment[j] = tiles.x[k][thread_col + j];";
constexpr const char* w_store = "tiles.w[row][k] =";
constexpr const char* w_loop = "for (int i = threadIdx.x; i < gemm_block_m * gemm_block_k; ";
constexpr const char* x_loop = "for (int i = threadIdx.x; i < gemm_block_k * gemm_block_n; ";
constexpr const char* y_store = "Y[row * d + col] = sum[i][j];";
constexpr const char* view = "*reinterpret_cast<GemmTiles *>(gemm_shared)";

const Case refusals[] = {
    {"a thread's columns are a stride apart",
     fragment,
     {{x_read, "x_fragment[j] = tiles.x[k][thread_col + j * 2];"}}},
    {"a thread's columns begin anywhere",
     fragment,
     {{"% gemm_threads_n * gemm_thread_n", "% gemm_threads_n * (gemm_thread_n - 1)"}}},
    {"a thread's columns begin one later",
     fragment,
     {{x_read, "x_fragment[j] = tiles.x[k][thread_col + j + 1];"}}},
    {"the groups begin in the middle",
     fragment,
     {{x_read, "x_fragment[j] = tiles.x[k][(thread_col + j + 2) % gemm_block_n];"}}},
    {"a row of the tile is no whole number of groups",
     fragment,
     {{"x[gemm_block_k][gemm_block_n];", "x[gemm_block_k][gemm_block_n + 1];"}}},
    {"the fragment is no whole number of groups",
     fragment,
     {{"j < gemm_thread_n", "j < gemm_thread_n - 1"}}},
    {"the tile begins behind a number",
     fragment,
     {{"float x[gemm_block_k]", "float odd; float x[gemm_block_k]"}}},
    {"the tiles begin behind something else", fragment, {{"(gemm_shared);", "(gemm_shared + 2);"}}},
    {"the tile is reached through a pointer",
     fragment,
     {{x_read, "const float *from = tiles.x[k]; x_fragment[j] = from[thread_col + j];"}}},
    {"a step moves two elements",
     fragment,
     {{x_read, "x_fragment[j] = tiles.x[k][thread_col + j]; w_fragment[0] = 0.0f;"}}},
    {"a step adds to the fragment",
     fragment,
     {{x_read, "x_fragment[j] += tiles.x[k][thread_col + j];"}}},
    {"the elements are read downwards in memory",
     fragment,
     {{x_read, "x_fragment[j] = tiles.x[k][thread_col + gemm_thread_n - 1 - j];"}}},
    {"the tile's row is no whole number of groups",
     w_copy,
     {{"gemm_block_k = 8;", "gemm_block_k = 6;"}}},
    {"a matrix is read downwards",
     w_copy,
     {{"W[(block_row + row) * d + k0 + k]", "W[(k0 + k) * d + block_row + row]"}}},
    {"an element depends on the thread",
     w_copy,
     {{w_store, "tiles.w[row][k] = threadIdx.x == 7 ? 1.0f :"}}},
    {"not all threads load",
     w_copy,
     {{w_loop, "if (threadIdx.x < 64) for (int i = threadIdx.x; i < "
               "gemm_block_m * gemm_block_k; "}}},
    {"some threads begin later",
     w_copy,
     {{w_loop, "for (int i = threadIdx.x * 2; i < gemm_block_m * gemm_block_k; "}}},
    {"a tile is read before the barrier",
     w_copy,
     {{x_loop, "sum[0][0] += tiles.w[0][threadIdx.x % 8];\n"
               "for (int i = threadIdx.x; i < gemm_block_k * gemm_block_n; "}}},
    {"a tile is added to", w_copy, {{w_store, "tiles.w[row][k] +="}}},
    {"the guard asks for single elements", w_copy, {{"k0 + k < d ? W", "k0 + k != 5 ? W"}}},
    {"the barrier behind the computation is missing",
     w_copy,
     {{"        }\n      }\n    }\n    __syncthreads();", "        }\n      }\n    }\n"}}},
    {"the barrier behind the computation is missing",
     x_copy,
     {{"        }\n      }\n    }\n    __syncthreads();", "        }\n      }\n    }\n"}}},
    {"the rows are dealt out", store, {{y_store, "Y[col * d + row] = sum[i][j];"}}},
    {"results are added up", store, {{y_store, "Y[row * d + col] += sum[i][j];"}}},
    {"the result reads the output",
     store,
     {{y_store, "Y[row * d + col] = sum[i][j] + Y[row * d + col + 1];"}}},
    {"the result reads what a launch passes as the output",
     store,
     {{y_store, "Y[row * d + col] = sum[i][j] + X[row * d + col];"},
      {"stream>>>(W, X, Y, d);", "stream>>>(W, Y, Y, d);"}}},
    {"the computation of a result may be left early",
     store,
     {{y_store, "while (true) { break; }\n        Y[row * d + col] = sum[i][j];"}}},
    {"the computation of a result changes another",
     store,
     {{y_store, "sum[0][0] += 1.0f;\n        Y[row * d + col] = sum[i][j];"}}},
    {"the condition asks for single elements",
     store,
     {{"col < d) {\n        Y", "col % 3 == 0) {\n        Y"}}},
};

INSTANTIATE_TEST_SUITE_P(VectoriseAccess, Refused, testing::ValuesIn(refusals));

class Accepted : public testing::TestWithParam<Case> {};

TEST_P(Accepted, InSpiteOfAChange) {
  const auto& [name, label, replacements] = GetParam();
  const std::string source = replaced(with_fragments(), replacements);
  EXPECT_TRUE(test::parses(test::apply(vectorise_access(), source, label)));
}

const Case accepted[] = {
    {"nothing changes", fragment, {}},
    {"rows are padded by whole groups",
     fragment,
     {{"x[gemm_block_k][gemm_block_n];", "x[gemm_block_k][gemm_block_n + 4];"}}},
    {"whole groups are exchanged",
     fragment,
     {{x_read, "x_fragment[j] = tiles.x[k][(thread_col + j) ^ ((k % 4) << 2)];"}}},
    {"a row of two elements allows pairs",
     "gemm/w copy vector 2",
     {{"gemm_block_k = 8;", "gemm_block_k = 6;"}, {"gemm_block_m = 64", "gemm_block_m = 64"}}},
    {"the index is computed by shifts",
     w_copy,
     {{"i / gemm_block_k", "i >> 3"}, {"i % gemm_block_k", "i & 7"}}},
    {"the tile is transposed",
     w_copy,
     {{"w[gemm_block_m][gemm_block_k];", "w[gemm_block_k][gemm_block_m];"},
      {"tiles.w[row][k]", "tiles.w[k][row]"},
      {"tiles.w[thread_row + i][k]", "tiles.w[k][thread_row + i]"}}},
    {"a transposed tile's fragment",
     "gemm/w fragment vector 4",
     {{"w[gemm_block_m][gemm_block_k];", "w[gemm_block_k][gemm_block_m];"},
      {"tiles.w[row][k]", "tiles.w[k][row]"},
      {"tiles.w[thread_row + i][k]", "tiles.w[k][thread_row + i]"}}},
    {"the bound is excluded the other way round", w_copy, {{"k0 + k < d ? W", "d > k0 + k ? W"}}},
    {"the condition is the bound's negation",
     store,
     {{"row < d && col < d", "!(row >= d || col >= d)"}}},
    {"the results are scaled", store, {{y_store, "Y[row * d + col] = 2.0f * sum[i][j];"}}},
    {"the results are read from other memory",
     store,
     {{y_store, "Y[row * d + col] = sum[i][j] + X[row * d + col];"}}},
    {"the results are computed in several steps",
     store,
     {{y_store, "float scaled = sum[i][j];\n        scaled *= 2.0f;\n        "
                "Y[row * d + col] = scaled;"}}},
    {"there are no bounds", store, {{"if (row < d && col < d) {", "{"}}},
};

INSTANTIATE_TEST_SUITE_P(VectoriseAccess, Accepted, testing::ValuesIn(accepted));

TEST(LoadFragments, IsProposedOnce) {
  EXPECT_THAT(test::labels(load_fragments(), with_fragments()), IsEmpty());
}

TEST(VectoriseAccess, IsProposedOnce) {
  const std::string after = followed(with_fragments(), {{&vectorise_access(), fragment},
                                                        {&vectorise_access(), w_copy},
                                                        {&vectorise_access(), x_copy},
                                                        {&vectorise_access(), store}});
  EXPECT_THAT(test::labels(vectorise_access(), after), IsEmpty());
}

TEST(VectoriseAccess, CommutesWithItself) {
  EXPECT_EQ(
      followed(with_fragments(), {{&vectorise_access(), fragment}, {&vectorise_access(), x_copy}}),
      followed(with_fragments(), {{&vectorise_access(), x_copy}, {&vectorise_access(), fragment}}));
}

TEST(VectoriseAccess, LeavesTilesThatOthersReshape) {
  const std::string after =
      followed(with_fragments(), {{&vectorise_access(), fragment}, {&vectorise_access(), x_copy}});
  const auto shapes = test::labels(reshape_tile(), after);
  EXPECT_THAT(shapes, Contains("gemm/gemm_thread_n 8"));
  EXPECT_THAT(shapes, Contains("gemm/gemm_block_k 16"));
  EXPECT_THAT(shapes, Not(Contains("gemm/gemm_thread_n 2"))) << "no whole groups any more";
}

struct Staged : testing::TestWithParam<Case> {};

TEST_P(Staged, IsRefusedBecauseOfOneChange) {
  const auto& [name, label, replacements] = GetParam();
  const std::string before = followed(seed(), {{&double_buffer(), "gemm/k0 double buffer"}});
  ASSERT_THAT(test::labels(vectorise_access(), before), Contains(label));
  const std::string source = replaced(before, replacements);
  ASSERT_TRUE(test::parses(source));
  EXPECT_THAT(test::labels(vectorise_access(), source), Not(Contains(label)));
}

const Case staged_refusals[] = {
    {"the registers are used elsewhere",
     "gemm/w#2 copy vector 2",
     {{"float x_next[gemm_x_loads];", "float x_next[gemm_x_loads]; w_next[0] = 0.0f;"}}},
    {"a half deals out other elements",
     "gemm/w#2 copy vector 2",
     {{"const int i = threadIdx.x + step * gemm_threads;",
       "const int i = (threadIdx.x ^ 1) + step * gemm_threads;"}}},
    {"the next stage may be the one computed on",
     "gemm/w#2 copy vector 2",
     {{"(stage + 1) % gemm_stages", "(stage + 2) % gemm_stages"}}},
    {"a thread has no whole number of groups",
     "gemm/w#2 copy vector 2",
     {{"gemm_block_k = 8;", "gemm_block_k = 4;"}}},
};

INSTANTIATE_TEST_SUITE_P(VectoriseAccess, Staged, testing::ValuesIn(staged_refusals));

TEST(VectoriseAccess, LeavesTilesThatOthersDoubleBuffer) {
  const std::string after = followed(with_fragments(), {{&vectorise_access(), fragment},
                                                        {&vectorise_access(), w_copy},
                                                        {&vectorise_access(), x_copy}});
  EXPECT_THAT(test::labels(double_buffer(), after), Contains("gemm/k0 double buffer"));
}

} // namespace
} // namespace evo
