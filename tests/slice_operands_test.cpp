// What slice_operands accepts and refuses, and what it computes on the CPU: as exact as its digits,
// and the same bits in whatever tiles and order.
#include <array>
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fitness/cpu/executor.hpp"
#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::Change;
using test::followed;
using test::Trail;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Lt;
using testing::Not;

std::string golden() {
  return test::read(test::in_repository("tests/mutators/slice_operands/before.cu"));
}

const Trail sliced{{&slice_operands(), "multiply/k int8x6"}};

class Refused : public testing::TestWithParam<Change> {};

TEST_P(Refused, BecauseOfOneChange) {
  EXPECT_THAT(test::labels(slice_operands(), test::changed(golden(), GetParam())), IsEmpty());
}

const Change refusals[] = {
    {"the sum begins behind the first tile", {{"k0 = 0; k0 < d", "k0 = block_k; k0 < d"}}},
    {"the sum ends before the last tile", {{"k0 < d; k0", "k0 < d - block_k; k0"}}},
    {"a loop takes half of a tile", {{"k0 += block_k", "k0 += block_k / 2"}}},
    {"a pair of columns is alone",
     {{"thread_n = 4;\nconstexpr int multiply_parts = 2;\n"
       "static_assert(block_k % 32 == 0 && thread_m % 2 == 0 && thread_n % 4 == 0);",
       "thread_n = 2;\nconstexpr int multiply_parts = 2;"}}},
    {"a tile is computed", {{"? W[line * d + col]", "? 2.0f * W[line * d + col]"}}},
    {"a matrix is read elsewhere too", {{"= sum[i][j];", "= sum[i][j] + W[line * d + col];"}}},
    {"the kernel is launched twice",
     {{"  return cudaGetLastError();",
       "  multiply<<<dim3(blocks_n, blocks_m), threads, 0, stream>>>(X, W, Y, d);\n"
       "  return cudaGetLastError();"}}},
};

INSTANTIATE_TEST_SUITE_P(SliceOperands, Refused, testing::ValuesIn(refusals));

TEST(SliceOperands, IsDoneOnce) {
  const std::string after = followed(golden(), sliced);
  EXPECT_THAT(test::labels(slice_operands(), after), IsEmpty());
  EXPECT_THAT(test::labels(split_operands(), after), IsEmpty());
  EXPECT_THAT(test::labels(tensorise(), after), IsEmpty());
}

TEST(SliceOperands, LeavesNoConstantThatNothingNames) {
  EXPECT_THAT(followed(golden(), sliced), Not(HasSubstr("multiply_parts")));
}

// The sums of its orders are not those of any part of k.
TEST(SliceOperands, LeavesItsLoopInOnePiece) {
  const std::string after = followed(golden(), sliced);
  EXPECT_THAT(test::labels(split_tail(), after), IsEmpty());
  EXPECT_THAT(test::labels(promote_sums(), after), Not(Contains(HasSubstr("multiply/k0"))));
}

// ---- what it computes
// -----------------------------------------------------------------------------

constexpr int size = 2 * 32 + 3; // of the golden's tiles

std::vector<float> random_values(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(std::size_t{size} * size);
  for (float& value : values) {
    value = static_cast<float>(random()) * 0x1p-31f - 1.0f;
  }
  return values;
}

std::vector<float> computed(const std::string& source, const std::vector<float>& w,
                            const std::vector<float>& x) {
  cpu::Executor executor(test::cpu_library(source), "product");
  cpu::Tensor y{"Y", std::vector<float>(w.size())};
  const cpu::Run run = executor.run({{"W", w}, {"X", x}}, y, {size}, {});
  EXPECT_EQ(run.verdict, Verdict::Ok) << run.detail;
  return y.values;
}

/// A number as digits that count 1, 2^-8 and 2^-16 of a unit, the power of two with which a
/// magnitude is at most 127 units.
std::array<double, 3> digits_of(float value, float magnitude) {
  const int exponent = std::ilogb(127.0f * 65536.0f / magnitude);
  auto integer = static_cast<int>(std::nearbyint(std::ldexp(value, exponent)));
  std::array<double, 3> digits{};
  for (std::size_t digit = 3; digit-- > 0;) {
    const int low = digit == 0 ? integer : static_cast<std::int8_t>(integer);
    digits[digit] = std::ldexp(low, 16 - 8 * static_cast<int>(digit) - exponent);
    integer = (integer - low) / 256;
  }
  return digits;
}

struct Errors {
  double derived = 0; // of what digits leave out, and of one rounding of the sum to float32
  double measured = 0;
};

Errors errors_of(const std::string& source, std::size_t slices) {
  const std::vector<float> w = random_values(1);
  const std::vector<float> x = random_values(2);
  std::vector<float> rows(size);
  std::vector<float> columns(size);
  for (int i = 0; i < size * size; ++i) {
    rows[i / size] = std::max(rows[i / size], std::abs(w[i]));
    columns[i % size] = std::max(columns[i % size], std::abs(x[i]));
  }
  const std::vector<float> values = computed(source, w, x);
  Errors errors;
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column < size; ++column) {
      double sum = 0;
      double kept = 0;
      for (int k = 0; k < size; ++k) {
        const auto a = digits_of(w[row * size + k], rows[row]);
        const auto b = digits_of(x[k * size + column], columns[column]);
        sum += double{w[row * size + k]} * x[k * size + column];
        for (std::size_t i = 0; i < slices; ++i) {
          for (std::size_t j = 0; i + j < slices; ++j) {
            kept += a[i] * b[j];
          }
        }
      }
      const double unit = std::ldexp(1.0, std::ilogb(sum) - 23);
      errors.derived += std::pow(sum - kept, 2) + unit * unit / 12;
      errors.measured += std::pow(values[row * size + column] - sum, 2);
    }
  }
  return {std::sqrt(errors.derived) / size, std::sqrt(errors.measured) / size};
}

TEST(SliceOperandsValues, AreAsAccurateAsTheirDigits) {
  const Errors three = errors_of(followed(golden(), sliced), 3);
  EXPECT_THAT(three.measured, AllOf(Gt(three.derived / 1.5), Lt(three.derived * 1.5)));
  const Errors two = errors_of(followed(golden(), {{&slice_operands(), "multiply/k int8x3"}}), 2);
  EXPECT_THAT(two.measured, AllOf(Gt(two.derived / 1.5), Lt(two.derived * 1.5)));
  EXPECT_THAT(two.measured, Gt(30 * three.measured));
}

// A product of the wrong slices, or a sum that counts for another order, is no rounding error.
TEST(SliceOperandsValues, ShowWhatIsAmiss) {
  const std::string after = followed(golden(), sliced);
  const auto excess = [&](const std::string& from, const std::string& to) {
    const Errors errors = errors_of(test::replaced(after, from, to), 3);
    return errors.measured / errors.derived;
  };
  EXPECT_THAT(excess("0x001012", "0x001011"), Gt(4));
  EXPECT_THAT(excess("3 * k_depth", "4 * k_depth"), Gt(100));
  EXPECT_THAT(excess("next_order_int8(sums", "// next_order_int8(sums"), Gt(100));
}

TEST(SliceOperandsValues, AreRightForRowsOfAnyMagnitude) {
  std::vector<float> w = random_values(1);
  std::vector<float> x = random_values(2);
  for (int i = 0; i < size * size; ++i) {
    w[i] *= i / size == 3 ? 0.0f : std::ldexp(1.0f, i / size % 7 * 12 - 40);
    x[i] *= std::ldexp(1.0f, i % size % 5 * 20 - 40);
  }
  const std::vector<float> values = computed(followed(golden(), sliced), w, x);
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column < size; ++column) {
      double sum = 0;
      double norm = 0;
      for (int k = 0; k < size; ++k) {
        const double product = double{w[row * size + k]} * x[k * size + column];
        sum += product;
        norm += std::abs(product);
      }
      EXPECT_LE(std::abs(values[row * size + column] - sum), 1e-6 * norm);
    }
  }
}

TEST(SliceOperandsValues, AreExactForSmallIntegers) {
  std::vector<float> w = random_values(1);
  std::vector<float> x = random_values(2);
  for (int i = 0; i < size * size; ++i) {
    w[i] = std::round(w[i] * 4);
    x[i] = std::round(x[i] * 4);
  }
  const std::vector<float> values = computed(followed(golden(), sliced), w, x);
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column < size; ++column) {
      float sum = 0;
      for (int k = 0; k < size; ++k) {
        sum += w[row * size + k] * x[k * size + column];
      }
      EXPECT_EQ(values[row * size + column], sum);
    }
  }
}

// Integers are the same in whatever order they are added.
TEST(SliceOperandsValues, AreTheSameBitsInAnyTiles) {
  const std::string before = followed(golden(), sliced);
  for (const Trail& trail : {Trail{{&pipeline_copies(), "multiply/k0 stages 3 async"}},
                             Trail{{&pipeline_copies(), "multiply/k0 stages 2 async"},
                                   {&reshape_tile(), "multiply/block_m 64, thread_m 8"},
                                   {&rasterise_blocks(), "multiply/blocks raster 4"}},
                             Trail{{&reshape_tile(), "multiply/block_k 64"},
                                   {&double_buffer(), "multiply/k0 double buffer"}}}) {
    EXPECT_EQ(computed(followed(before, trail), random_values(3), random_values(4)),
              computed(before, random_values(3), random_values(4)));
  }
}

} // namespace
} // namespace evo
