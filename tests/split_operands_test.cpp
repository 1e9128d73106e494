// What split_operands accepts and refuses, what it leaves to other rewrites, and what it computes
// on the CPU: bit for bit what the kernel did that split its operands in registers.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fitness/cpu/executor.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::Change;
using test::followed;
using test::Trail;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string golden() {
  return test::read(test::in_repository("tests/mutators/split_operands/before.cu"));
}

const Trail split{{&split_operands(), "multiply/k split beforehand"}};

Trail then(Trail first, const Trail& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class Refused : public testing::TestWithParam<Change> {};

TEST_P(Refused, BecauseOfOneChange) {
  EXPECT_THAT(test::labels(split_operands(), test::changed(golden(), GetParam())), IsEmpty());
}

const Change refusals[] = {
    {"the sum has a constant length", {{"k0 < d; k0", "k0 < 64; k0"}}},
    {"a matrix is read elsewhere too", {{"= sum[i][j];", "= sum[i][j] + W[line * d + col];"}}},
    {"a tile is computed", {{"? W[line * d + col]", "? 2.0f * W[line * d + col]"}}},
    {"a tile is read elsewhere too", {{"= sum[i][j];", "= sum[i][j] + w[0][0];"}}},
    {"two matrices are behind one another", {{"? X[line * d + col]", "? W[line * d + col]"}}},
    {"a lane has no name",
     {{"const int lane = threadIdx.x % 32;", "const int lane = threadIdx.x % 16;"}}},
    {"the kernel is launched twice",
     {{"  return cudaGetLastError();",
       "  multiply<<<dim3(blocks_n, blocks_m), threads, 0, stream>>>(X, W, Y, d);\n"
       "  return cudaGetLastError();"}}},
};

INSTANTIATE_TEST_SUITE_P(SplitOperands, Refused, testing::ValuesIn(refusals));

TEST(SplitOperands, IsDoneOnce) {
  EXPECT_THAT(test::labels(split_operands(), followed(golden(), split)), IsEmpty());
}

TEST(SplitOperands, LeavesTheStrategyToTensorise) {
  const std::string before = followed(golden(), split);
  EXPECT_THAT(test::labels(tensorise(), before),
              ElementsAre("multiply/k bf16x1", "multiply/k bf16x6", "multiply/k fp16x1",
                          "multiply/k fp16x3"));
  for (const char* label : {"multiply/k bf16x6", "multiply/k fp16x3"}) {
    const Trail strategy{{&tensorise(), label}};
    EXPECT_EQ(followed(golden(), then(split, strategy)), followed(golden(), then(strategy, split)));
  }
}

// Copies of 16 bytes by the lanes of a warp then take whole lines of the cache, at any size.
TEST(SplitOperands, PlacesTheWordsWhereLinesOfTheCacheBegin) {
  const std::string behind = test::replaced(golden(), "return 0;", "return sizeof(float) * d;");
  const Kernel kernel = test::parse(followed(behind, split));
  for (const std::int64_t size : {31, 32, 33, 67}) {
    const auto launches = launches_at(kernel, *find_dims(kernel), size);
    ASSERT_FALSE(launches.empty());
    for (std::size_t matrix : {0, 1}) {
      EXPECT_EQ(std::get<Buffer>(launches.back().arguments[matrix]).offset % 128, 0) << size;
    }
  }
}

// Two fragments make one load; an odd number of them leaves one alone.
TEST(SplitOperands, LoadsFragmentsInPairsWhereTheirNumberIsEven) {
  const std::string narrow =
      test::replaced(golden(), "constexpr int thread_n = 4;", "constexpr int thread_n = 2;");
  const Trail pairs{{&tensorise(), "multiply/k bf16x6"}};
  EXPECT_THAT(followed(golden(), then(split, pairs)), Not(HasSubstr("ldmatrix_x2")));
  EXPECT_THAT(followed(narrow, then(pairs, split)), HasSubstr("ldmatrix_x2"));
  EXPECT_THAT(test::labels(tensorise(), followed(narrow, split)),
              Not(Contains("multiply/k bf16x6")));
}

TEST(SplitOperands, ScalesFp16Alone) {
  const auto offered = [](const char* strategy) {
    return test::labels(split_operands(), followed(golden(), {{&tensorise(), strategy}}));
  };
  EXPECT_THAT(offered("multiply/k fp16x3"),
              ElementsAre("multiply/k split beforehand", "multiply/k split beforehand, scaled"));
  EXPECT_THAT(offered("multiply/k bf16x6"), ElementsAre("multiply/k split beforehand"));
}

/// The largest error over the sum of magnitudes, for matrices of `magnitude`.
double relative_error(const Trail& trail, float magnitude) {
  constexpr int size = 67;
  std::vector<float> values(std::size_t{size} * size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = magnitude * (static_cast<float>(i * 7919 % 2003) / 1001.0f - 1.0f);
  }
  cpu::Executor executor(test::cpu_library(followed(golden(), trail)), "product");
  cpu::Tensor y{"Y", std::vector<float>(values.size())};
  const cpu::Run run = executor.run({{"W", values}, {"X", values}}, y, {size}, {});
  EXPECT_EQ(run.verdict, Verdict::Ok) << run.detail;
  double largest = 0;
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column < size; ++column) {
      double sum = 0;
      double norm = 0;
      for (int k = 0; k < size; ++k) {
        const double product = double{values[row * size + k]} * values[k * size + column];
        sum += product;
        norm += std::abs(product);
      }
      const double error = std::abs(y.values[row * size + column] - sum) / norm;
      largest = std::isfinite(error) ? std::max(largest, error) : HUGE_VAL;
    }
  }
  return largest;
}

// fp16 knows no number below 2^-24 or above 65504.
TEST(SplitOperands, ScalesNumbersOfAnyMagnitude) {
  const std::pair<const Mutator*, std::string> fp16{&tensorise(), "multiply/k fp16x3"};
  const Trail plain{fp16, {&split_operands(), "multiply/k split beforehand"}};
  const Trail scaled{fp16, {&split_operands(), "multiply/k split beforehand, scaled"}};
  EXPECT_LT(relative_error(plain, 1.0f), 2e-6);
  EXPECT_GT(relative_error(plain, 1e-6f), 1e-3);
  EXPECT_EQ(relative_error(plain, 1e6f), HUGE_VAL);
  for (const float magnitude : {1.0f, 1e-6f, 1e6f}) {
    EXPECT_LT(relative_error(scaled, magnitude), 2e-6) << magnitude;
  }
}

// As where a count of parts leaves a copy without a whole number of steps.
TEST(SplitOperands, LeavesOnlyThePartsThatTheFileAllows) {
  const std::string even = test::replaced(
      followed(golden(), split), "constexpr int multiply_parts = 2;\n",
      "constexpr int multiply_parts = 2;\nstatic_assert(multiply_parts % 2 == 0);\n");
  EXPECT_THAT(test::labels(tensorise(), even), ElementsAre("multiply/k fp16x3"));
}

// Copies of whole words need neither a guard nor a wider access.
TEST(SplitOperands, LeavesTheCopiesToPipelines) {
  const std::string after =
      followed(golden(), then(split, {{&pipeline_copies(), "multiply/k0 stages 3 async"}}));
  EXPECT_THAT(after, HasSubstr("sizeof(uint4)"));
  EXPECT_THAT(test::labels(peel_edges(), after), Not(Contains(HasSubstr("k0 peel"))));
}

TEST(SplitOperands, ComesToTheSameBehindPadsAndWideCopies) {
  const Trail trail{{&relayout_tile(), "multiply/w pad 4"},
                    {&relayout_tile(), "multiply/x pad 4"},
                    {&vectorise_access(), "multiply/w copy vector 4"}};
  EXPECT_EQ(followed(golden(), then(trail, split)), followed(golden(), split));
}

struct Order {
  std::string name;
  Trail first;
  Trail second;
};

std::ostream& operator<<(std::ostream& stream, const Order& order) {
  return stream << order.name;
}

class InOrder : public testing::TestWithParam<Order> {};

std::string laid_out_seed() {
  return followed(canonical(test::read(test::in_repository("seeds/lora/tiled.cu"))),
                  {{&reshape_tile(), "gemm/gemm_block_k 16"},
                   {&remap_threads(), "gemm/lanes 8x4"},
                   {&remap_threads(), "gemm/thread_row groups 1 in warps"},
                   {&remap_threads(), "gemm/thread_col groups 2 in warps"}});
}

const std::pair<const Mutator*, std::string> split_gemm{&split_operands(),
                                                        "gemm/k split beforehand"};

/// Behind, at and before the end of the last of two tiles.
TEST_P(InOrder, ComputesTheSameBits) {
  const std::string before = followed(laid_out_seed(), GetParam().first);
  EXPECT_EQ(test::cpu_difference_at(test::lora(), before, followed(before, GetParam().second),
                                    {63, 128, 131}, true),
            "");
}

const Order orders[] = {
    {"bf16", {{&tensorise(), "gemm/k bf16x3"}}, {split_gemm}},
    {"three parts", {{&tensorise(), "gemm/k bf16x6"}}, {split_gemm}},
    {"fp16", {{&tensorise(), "gemm/k fp16x3"}}, {split_gemm}},
    {"tf32", {{&tensorise(), "gemm/k tf32x3"}}, {split_gemm}},
    {"one part", {{&tensorise(), "gemm/k tf32x1"}}, {split_gemm}},
    {"reshaped",
     {{&tensorise(), "gemm/k fp16x3"}},
     {split_gemm,
      {&reshape_tile(), "gemm/gemm_block_m 128, gemm_thread_m 8"},
      {&reshape_tile(), "gemm/gemm_block_n 32"},
      {&reshape_tile(), "gemm/gemm_block_k 32"}}},
    {"double-buffered",
     {{&tensorise(), "gemm/k bf16x3"},
      {&vectorise_access(), "gemm/w copy vector 4"},
      {&double_buffer(), "gemm/k0 double buffer"}},
     {split_gemm}},
    {"double-buffered in persistent blocks",
     {{&double_buffer(), "gemm/k0 double buffer"},
      {&persist_blocks(), "gemm/blocks persistent 82"},
      {&tensorise(), "gemm/k bf16x3"}},
     {split_gemm}},
    {"pipelined with one tile through registers",
     {{&pipeline_copies(), "gemm/k0 stages 2 async x"}, {&tensorise(), "gemm/k fp16x3"}},
     {split_gemm}},
    {"pipelined with paths for edges",
     {{&vectorise_access(), "gemm/w copy vector 4"},
      {&vectorise_access(), "gemm/x copy vector 4"},
      {&pipeline_copies(), "gemm/k0 stages 3 async"},
      {&peel_edges(), "gemm/k0 peel edges"},
      {&tensorise(), "gemm/k fp16x3"}},
     {split_gemm, {&reshape_tile(), "gemm/gemm_stages 4"}}},
    {"folded, transposed and pipelined",
     {{&fold_low_rank(), "gemm/W fold update"},
      {&relayout_matrix(), "gemm/folded transpose"},
      {&tensorise(), "gemm/k fp16x3"}},
     {split_gemm,
      {&vectorise_access(), "gemm/Y store vector 2"},
      {&pipeline_copies(), "gemm/k0 stages 4 async"},
      {&rasterise_blocks(), "gemm/blocks raster 4"}}},
};

INSTANTIATE_TEST_SUITE_P(SplitOperands, InOrder, testing::ValuesIn(orders));

} // namespace
} // namespace evo
