// The sequential test on simulated clocks: how often it is wrong, and how often it sees a gain.
#include "fitness/sequential_test.hpp"

#include <cmath>
#include <functional>
#include <random>

#include <gmock/gmock.h>

#include "fitness/block_order.hpp"
#include "fitness/block_statistics.hpp"

namespace evo {
namespace {

/// The factor that the card's state puts on one call's time; told which call of the test it is.
using Noise = std::function<double(std::mt19937_64&, int)>;

constexpr int sizes = 4;
constexpr int trials = 2000;
constexpr double sigma = 0.005; // of one call

/// A block as the worker would time it: the challenger is `gain` times as fast as the incumbent.
TimedBlock simulate(double gain, const Noise& noise, std::mt19937_64& random, int& calls) {
  TimedBlock block;
  for (int size = 0; size < sizes; ++size) {
    BlockTimes times{.size = size, .contenders_ms = {{}, {}}, .reference_ms = {}};
    for (const std::size_t next : block_order(2, random)) {
      const double ms = noise(random, calls++) * (next == 1 ? 4 / gain : 4);
      (next < 2 ? times.contenders_ms[next] : times.reference_ms).push_back(ms);
    }
    block.sizes.push_back(times);
  }
  return block;
}

struct Outcome {
  double faster = 0; // share of the trials
  double blocks = 0; // mean
};

Outcome simulate_trials(double gain, const Noise& noise) {
  Outcome outcome;
  std::mt19937_64 random(7);
  for (int trial = 0; trial < trials; ++trial) {
    SequentialTest test;
    int calls = static_cast<int>(random() % 1000); // where in its cycle the card is
    while (test.decision() == Decision::Undecided) {
      test.add(log_ratio(simulate(gain, noise, random, calls), 0, 1));
    }
    outcome.faster += test.decision() == Decision::Faster ? 1.0 / trials : 0;
    outcome.blocks += static_cast<double>(test.blocks()) / trials;
  }
  return outcome;
}

double normal(std::mt19937_64& random, int) {
  return std::exp(sigma * std::normal_distribution<double>()(random));
}

/// Now and then a call takes much longer.
double heavy_tailed(std::mt19937_64& random, int) {
  return std::exp(sigma * std::abs(std::student_t_distribution<double>(2)(random)));
}

/// A clock that falls by 5 % over a test.
double drifting(std::mt19937_64& random, int call) {
  return normal(random, call) * (1 + 0.05 * call / (24 * 6 * sizes));
}

/// Every few calls the card is throttled, and released again.
Noise throttled(int period) {
  return [period](std::mt19937_64& random, int call) {
    return normal(random, call) * (call / period % 2 == 0 ? 1 : 1.1);
  };
}

TEST(SequentialTest, AKernelRarelyBeatsItself) {
  EXPECT_LE(simulate_trials(1, normal).faster, 0.03);
  EXPECT_LE(simulate_trials(1, heavy_tailed).faster, 0.03);
  EXPECT_LE(simulate_trials(1, drifting).faster, 0.03);
  for (const int period : {1, 2, 3, 5, 7, 12, 24, 40}) {
    EXPECT_LE(simulate_trials(1, throttled(period)).faster, 0.05) << period;
  }
}

TEST(SequentialTest, TheErrorOfAllLooksTogetherIsTheOneItIsMadeFor) {
  // Half of 5 %, within three standard errors, though six looks of 5 % each would make about 8 %.
  const double faster = simulate_trials(1, normal).faster;
  EXPECT_NEAR(faster, 0.025, 3 * std::sqrt(0.025 / trials) + 0.01);
}

TEST(SequentialTest, AGainOfOnePercentIsSeen) {
  const Outcome outcome = simulate_trials(1.01, normal);
  EXPECT_GE(outcome.faster, 0.95);
  EXPECT_LE(outcome.blocks, 8);
}

TEST(SequentialTest, ALossIsGivenUpEarly) {
  const Outcome outcome = simulate_trials(0.99, normal);
  EXPECT_LE(outcome.faster, 0.001);
  EXPECT_LE(outcome.blocks, 8);
}

TEST(SequentialTest, DecidesAtLooksOnly) {
  SequentialTest test;
  EXPECT_EQ(test.decision(), Decision::Undecided);
  for (int i = 0; i < SequentialTest::look_step - 1; ++i) {
    test.add(0.02 + 0.0001 * i);
    EXPECT_EQ(test.decision(), Decision::Undecided);
  }
  test.add(0.02);
  EXPECT_EQ(test.decision(), Decision::Faster);
  const Estimate estimate = test.estimate();
  EXPECT_NEAR(estimate.ratio, std::exp(0.02), 1e-4);
  EXPECT_LT(estimate.low, estimate.ratio);
  EXPECT_LT(estimate.ratio, estimate.high);
}

TEST(SequentialTest, WithoutBlocksLeftAChallengerHasLost) {
  SequentialTest test;
  for (int i = 0; i < SequentialTest::most_blocks; ++i) {
    EXPECT_EQ(test.decision(), Decision::Undecided) << i;
    test.add(i % 2 == 0 ? 0.1 : -0.09);
  }
  EXPECT_EQ(test.decision(), Decision::NotFaster);
}

TEST(SequentialTest, OneBlockBoundsNothing) {
  EXPECT_EQ(student_interval({0.1}, 0.05).low, 0);
  EXPECT_TRUE(std::isinf(student_interval({}, 0.05).high));
}

TEST(StudentInterval, IsTheTextbooks) {
  const Estimate interval = student_interval({1, 2, 3, 4, 5}, 0.05); // t(4) = 2.776
  const double reach = 2.7764451 * std::sqrt(2.5 / 5);
  EXPECT_NEAR(std::log(interval.low), 3 - reach, 1e-6);
  EXPECT_NEAR(std::log(interval.high), 3 + reach, 1e-6);
}

} // namespace
} // namespace evo
