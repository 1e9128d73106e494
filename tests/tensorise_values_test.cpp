// Warp products on the CPU: as exact as their strategy says, no more and no less.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fitness/cpu/executor.hpp"
#include "mutators/registry.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using testing::AllOf;
using testing::Gt;
using testing::Lt;

constexpr int size = 2 * 32 + 3; // of the golden's tiles

struct Strategy {
  const char* label;
  int bits; // of a part, the leading one too
  int least_exponent;
  int parts;
  int depth; // of one instruction
};

void PrintTo(const Strategy& strategy, std::ostream* stream) {
  *stream << strategy.label;
}

std::vector<float> random_values(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(std::size_t{size} * size);
  for (float& value : values) {
    value = static_cast<float>(random()) * 0x1p-31f - 1.0f;
  }
  return values;
}

/// What a float is split into.
std::vector<double> parts_of(double value, const Strategy& strategy) {
  std::vector<double> parts;
  for (int part = 0; part < strategy.parts; ++part) {
    const int exponent = value == 0 ? 0 : std::max(std::ilogb(value), strategy.least_exponent);
    const double unit = std::ldexp(1.0, exponent - strategy.bits + 1);
    parts.push_back(std::nearbyint(value / unit) * unit);
    value -= parts.back();
  }
  return parts;
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; i + j < a.size(); ++j) {
      sum += a[i] * b[j];
    }
  }
  return sum;
}

/// Root mean square: what the split drops with one rounding of the sum per instruction, and what a
/// run is off by.
struct Errors {
  double derived = 0;
  double measured = 0;
};

Errors errors_of(const std::string& source, const Strategy& strategy) {
  const std::vector<float> w = random_values(1);
  const std::vector<float> x = random_values(2);
  cpu::Executor executor(test::cpu_library(source), "product");
  cpu::Tensor y{"Y", std::vector<float>(w.size())};
  const cpu::Run run = executor.run({{"W", w}, {"X", x}}, y, {size}, {});
  EXPECT_EQ(run.verdict, Verdict::Ok) << run.detail;
  double derived = 0;
  double measured = 0;
  const int products = strategy.parts * (strategy.parts + 1) / 2;
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column < size; ++column) {
      double sum = 0;
      double kept = 0;
      for (int k = 0; k < size; ++k) {
        const double a = w[row * size + k];
        const double b = x[k * size + column];
        sum += a * b;
        kept += product(parts_of(a, strategy), parts_of(b, strategy));
        if (k % strategy.depth == strategy.depth - 1) {
          derived += products * std::pow(std::ldexp(1.0, std::ilogb(sum) - 23), 2) / 12;
        }
      }
      derived += (sum - kept) * (sum - kept);
      measured += std::pow(y.values[row * size + column] - sum, 2);
    }
  }
  return {std::sqrt(derived) / size, std::sqrt(measured) / size};
}

std::string before() {
  return test::read(test::in_repository("tests/mutators/tensorise/before.cu"));
}

class EveryStrategy : public testing::TestWithParam<Strategy> {};

TEST_P(EveryStrategy, IsAsAccurateAsDerived) {
  const std::string source =
      test::apply(tensorise(), before(), "multiply/k " + std::string(GetParam().label));
  const Errors errors = errors_of(source, GetParam());
  EXPECT_THAT(errors.measured, AllOf(Gt(errors.derived / 1.5), Lt(errors.derived * 1.5)));
}

constexpr int float_exponent = -126;
constexpr int half_exponent = -14;

INSTANTIATE_TEST_SUITE_P(TensoriseValues, EveryStrategy,
                         testing::Values(Strategy{"bf16x1", 8, float_exponent, 1, 16},
                                         Strategy{"bf16x3", 8, float_exponent, 2, 16},
                                         Strategy{"bf16x6", 8, float_exponent, 3, 16},
                                         Strategy{"fp16x1", 11, half_exponent, 1, 16},
                                         Strategy{"fp16x3", 11, half_exponent, 2, 16},
                                         Strategy{"tf32x1", 11, float_exponent, 1, 8},
                                         Strategy{"tf32x3", 11, float_exponent, 2, 8}));

TEST(TensoriseValues, ShowsADroppedProduct) {
  const Strategy strategy{"bf16x3", 8, float_exponent, 2, 16};
  const std::string source = test::apply(tensorise(), before(), "multiply/k bf16x3");
  const Errors errors = errors_of(
      test::replaced(source, "int part = 0; part <= order", "int part = order; part <= order"),
      strategy);
  EXPECT_THAT(errors.measured, Gt(10 * errors.derived));
}

/// Root mean square error of positive sums over k = 224 on tensor cores that truncate.
double truncated_error(const std::string& source) {
  constexpr int depth = 224;
  std::vector<float> w(std::size_t{depth} * depth);
  std::vector<float> x(w.size());
  std::mt19937 random(3);
  for (std::size_t i = 0; i < w.size(); ++i) {
    w[i] = static_cast<float>(random()) * 0x1p-32f;
    x[i] = static_cast<float>(random()) * 0x1p-32f;
  }
  cpu::Executor executor(test::cpu_library(source), "product");
  cpu::Tensor y{"Y", std::vector<float>(w.size())};
  executor.run({{"W", w}, {"X", x}}, y, {depth}, {.accumulation = cpu::Accumulation::Hopper});
  double squares = 0;
  for (int row = 0; row < 32; ++row) {
    for (int column = 0; column < 32; ++column) {
      double sum = 0;
      for (int k = 0; k < depth; ++k) {
        sum += static_cast<double>(w[row * depth + k]) * x[k * depth + column];
      }
      squares += std::pow(y.values[row * depth + column] - sum, 2);
    }
  }
  return std::sqrt(squares) / 32;
}

TEST(TensoriseValues, PiecesCollectLessTruncation) {
  const std::string one = test::apply(tensorise(), before(), "multiply/k bf16x6");
  const std::string pieces = test::apply(promote_sums(), one, "multiply/k0 promote every 64");
  EXPECT_THAT(truncated_error(pieces), AllOf(Gt(0), Lt(truncated_error(one) / 1.5)));
}

} // namespace
} // namespace evo
