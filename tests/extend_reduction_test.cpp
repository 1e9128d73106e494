// What extend_reduction refuses, one change of the kernel at a time, and that order of rewrites
// does not matter where both orders are possible.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using testing::IsEmpty;

constexpr const char* label = "gemm/k0 extend by update_sum";

std::string golden(const std::string& name) {
  return test::read(test::in_repository("tests/mutators/extend_reduction") / name);
}

struct Case {
  std::string name;
  std::string from;
  std::string to;
};

std::ostream& operator<<(std::ostream& stream, const Case& changed) {
  return stream << changed.name;
}

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, IsNotProposed) {
  const auto& [name, from, to] = GetParam();
  const std::string source = test::replaced(golden("before.cu"), from, to);
  ASSERT_TRUE(test::parses(source));
  EXPECT_THAT(test::labels(extend_reduction(), source), IsEmpty());
}

constexpr const char* update = "update_sum += A[row * rank + k] * T[k * d + col];";

const Case refusals[] = {
    {"a sum that begins elsewhere", "float update_sum = 0.0f;", "float update_sum = 1.0f;"},
    {"a sum that skips a step", "for (int k = 0; k < rank; ++k) {\n          update_sum",
     "for (int k = 1; k < rank; ++k) {\n          update_sum"},
    {"a sum of sums", update, "update_sum += A[row * rank + k] + T[k * d + col];"},
    {"another element of the row", update, "update_sum += A[row * rank + k] * T[k * d + row];"},
    {"three factors", update, "update_sum += A[row * rank + k] * T[k * d + col] * 2.0f;"},
    {"a difference", "sum[i][j] + update_sum", "sum[i][j] - update_sum"},
    {"a scaled product", "sum[i][j] + update_sum", "2.0f * sum[i][j] + update_sum"},
    {"a copy of twice the value", "block_row + row < d && k0 + k < d ? W",
     "block_row + row < d && k0 + k < d ? 2.0f * W"},
};

INSTANTIATE_TEST_SUITE_P(ExtendReduction, Refused, testing::ValuesIn(refusals));

TEST(ExtendReduction, RoundsInAnotherOrder) {
  EXPECT_FALSE(extend_reduction().about().keeps_order);
}

TEST(ExtendReduction, ComesAfterRewritesOfTheTiles) {
  const test::Trail trail{{&relayout_tile(), "gemm/w transpose"},
                          {&load_fragments(), "gemm/k fragments"},
                          {&vectorise_access(), "gemm/x fragment vector 2"},
                          {&vectorise_access(), "gemm/w copy vector 4"},
                          {&vectorise_access(), "gemm/x copy vector 4"},
                          {&rasterise_blocks(), "gemm/blocks raster 4"},
                          {&cache_hints(), "gemm/A loads read-only"},
                          {&extend_reduction(), label},
                          {&peel_edges(), "gemm/k0 peel edges"},
                          {&cache_hints(), "gemm/Y stores streaming"}};
  EXPECT_TRUE(test::parses(test::followed(golden("before.cu"), trail)));
}

} // namespace
} // namespace evo
