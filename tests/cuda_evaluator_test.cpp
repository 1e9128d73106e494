// What the judge decides from what the worker answers; the worker is a fake one.
#include "population/cuda_evaluator.hpp"

#include <gmock/gmock.h>

#include "population/duel.hpp"

namespace evo {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

constexpr int sizes_count = 2;
const std::vector<int> sizes{64, 65};

/// FFMA takes at least 0.5 ms at size 64 here, and int8 a sixteenth of it.
constexpr CardRates card{
    .multiprocessors = 1, .clock_mhz = 1, .memory_clock_mhz = 0, .bus_bits = 0, .l2_bytes = 0};

Problem square_product() {
  Problem problem;
  problem.vary = "n";
  problem.dim_order = {"n"};
  problem.output = {.name = "Y", .shape = {"n"}, .distribution = {}, .scale = 1, .fan_in = {}};
  problem.flops = {{.coefficient = 2000, .dims = {"n"}}};
  return problem;
}

Built built(const std::string& behaviour) {
  return {.library = behaviour, .binary_digest = {}, .kernels = {}, .probe_sizes = {}};
}

Genome genome(const std::string& id) {
  return {.id = id, .seed = {}, .trail = {}, .source = {}};
}

class CudaEvaluatorTest : public testing::Test {
protected:
  Judgement judge(const std::string& behaviour, const Incumbent* incumbent) {
    return evaluator_.judge(genome("challenger"), built(behaviour), incumbent, {});
  }

  /// An incumbent that took `screened_ms` when it was judged.
  Incumbent incumbent(const std::string& behaviour) {
    return {"incumbent", built(behaviour), judge(behaviour, nullptr).fitness};
  }

  static Builder builder() {
    return Builder({.nvcc = Builder::find_nvcc(), .arch = "sm_86", .cache = "/nonexistent"});
  }

  CudaEvaluator evaluator_{
      builder(),
      std::make_unique<WorkerClient>(EVO_FAKE_WORKER, PrepareRequest{}, WorkerDeadlines{}),
      *Target::find("sm_86"),
      sizes,
      Floor(square_product(), card, "sm_86"),
      VerifySettings{Level::Strict, {64, 66}}};
};

TEST_F(CudaEvaluatorTest, TheFirstIsTheEliteByItsScreening) {
  const Judgement judgement = judge("4", nullptr);
  EXPECT_TRUE(judgement.confirmed);
  EXPECT_EQ(judgement.fitness.speedup, 1);
}

TEST_F(CudaEvaluatorTest, WhatIsNoFasterIsOnlyScreened) {
  const Incumbent best = incumbent("4");
  for (const char* behaviour : {"4 then crash", "5 then crash", "3.99 then crash"}) {
    const Judgement judgement = judge(behaviour, &best);
    EXPECT_EQ(judgement.fitness.verdict, Verdict::Ok) << behaviour;
    EXPECT_FALSE(judgement.confirmed) << behaviour;
    EXPECT_FALSE(judgement.incumbent) << behaviour;
  }
}

TEST_F(CudaEvaluatorTest, AFasterChallengerIsConfirmedByItsBlocks) {
  const Incumbent best = incumbent("4 then 4.2");
  const Judgement judgement = judge("3.9 then 4", &best);
  EXPECT_TRUE(judgement.confirmed);
  ASSERT_EQ(judgement.fitness.sizes.size(), sizes_count);
  EXPECT_THAT(judgement.fitness.sizes[1].median_ms, DoubleNear(4, 0.01));
  EXPECT_EQ(judgement.fitness.sizes[1].calls, 2 * SequentialTest::look_step);
  ASSERT_TRUE(judgement.incumbent);
  EXPECT_THAT(judgement.incumbent->sizes[1].median_ms, DoubleNear(4.2, 0.01));
  EXPECT_GT(judgement.fitness.speedup, judgement.incumbent->speedup);
}

TEST_F(CudaEvaluatorTest, AChallengerThatOnlyLookedFasterIsNot) {
  const Incumbent best = incumbent("4");
  const Judgement judgement = judge("3.9 then 4", &best);
  EXPECT_EQ(judgement.fitness.verdict, Verdict::Ok);
  EXPECT_FALSE(judgement.confirmed);
  EXPECT_THAT(judgement.fitness.speedup, DoubleNear(1, 0.01)) << "what the blocks say";
}

TEST_F(CudaEvaluatorTest, AChallengerFoundOutInTheDuelIsAFailure) {
  const Incumbent best = incumbent("4");
  const Judgement judgement = judge("3 then suspicious", &best);
  EXPECT_EQ(judgement.fitness.verdict, Verdict::Suspicious);
  EXPECT_EQ(judgement.fitness.detail, "found out");
  EXPECT_TRUE(judgement.fitness.sizes.empty());
  EXPECT_FALSE(judgement.confirmed);
  EXPECT_FALSE(judgement.incumbent);
}

TEST_F(CudaEvaluatorTest, AChallengerThatFailsACaseIsNotEvenTimed) {
  const Incumbent best = incumbent("4 then crash");
  const Judgement judgement = judge("3 then fail a case", &best);
  EXPECT_EQ(judgement.fitness.verdict, Verdict::WrongAnswer);
  EXPECT_EQ(judgement.fitness.detail, "in a case");
  EXPECT_TRUE(judgement.fitness.measured);
  EXPECT_FALSE(judgement.confirmed);
}

TEST_F(CudaEvaluatorTest, TheFirstIsVerifiedToo) {
  EXPECT_EQ(judge("4 then fail a case", nullptr).fitness.verdict, Verdict::WrongAnswer);
  EXPECT_EQ(judge("4 then crash in a case", nullptr).fitness.verdict, Verdict::Crash);
}

TEST_F(CudaEvaluatorTest, AnEliteKeepsWhatItsVerificationFound) {
  const Incumbent best = incumbent("4");
  ASSERT_TRUE(best.fitness.verification);
  EXPECT_EQ(best.fitness.verification->level, Level::Strict);
  EXPECT_EQ(best.fitness.verification->calls, 500);
  const Judgement judgement = judge("3 then 3", &best);
  EXPECT_TRUE(judgement.confirmed);
  EXPECT_TRUE(judgement.fitness.verification);
  EXPECT_FALSE(judge("5 then fail a case", &best).fitness.verification) << "no contender";
}

TEST_F(CudaEvaluatorTest, ADeathInTheDuelIsTheChallengers) {
  const Incumbent best = incumbent("4");
  const Judgement judgement = judge("3 then crash", &best);
  EXPECT_EQ(judgement.fitness.verdict, Verdict::Crash);
  EXPECT_THAT(judgement.fitness.detail, HasSubstr("signal 11"));
  EXPECT_EQ(judge("4", nullptr).fitness.verdict, Verdict::Ok) << "there is a new worker";
}

TEST_F(CudaEvaluatorTest, AnIncumbentFoundOutInTheDuelIsDethroned) {
  const Incumbent best = incumbent("4 then wrong answer");
  const Judgement judgement = judge("3 then 3", &best);
  EXPECT_EQ(judgement.fitness.verdict, Verdict::Ok);
  EXPECT_TRUE(judgement.confirmed);
  ASSERT_TRUE(judgement.incumbent);
  EXPECT_EQ(judgement.incumbent->verdict, Verdict::WrongAnswer);
}

TEST_F(CudaEvaluatorTest, NobodyIsFasterThanTheCard) {
  Built ffma = built("0.4");
  ffma.kernels["f"].products = {{PrecisionClass::Ffma, 64}};
  const Fitness fitness = evaluator_.judge(genome("a"), ffma, nullptr, {}).fitness;
  EXPECT_EQ(fitness.verdict, Verdict::Suspicious);
  EXPECT_THAT(fitness.detail, HasSubstr("with ffma products"));
  EXPECT_TRUE(fitness.sizes.empty());
  EXPECT_EQ(judge("0.4", nullptr).fitness.verdict, Verdict::Ok) << "perhaps by int8";
}

TEST_F(CudaEvaluatorTest, NorIsAChallengerInItsBlocks) {
  const Incumbent best = incumbent("4");
  const Judgement judgement = judge("3 then 0.01", &best);
  EXPECT_EQ(judgement.fitness.verdict, Verdict::Suspicious);
  EXPECT_FALSE(judgement.confirmed);
}

TEST(ParseGate, AsksThePolicyUnlessItIsLeftOut) {
  const Target target = *Target::find("sm_86");
  Genome counting = genome("counting");
  counting.source = "int calls;";
  const auto refused = parse_gate(counting, target);
  ASSERT_TRUE(std::holds_alternative<BuildFailure>(refused));
  EXPECT_EQ(std::get<BuildFailure>(refused).verdict, Verdict::RefusedByPolicy);
  EXPECT_THAT(std::get<BuildFailure>(refused).detail, HasSubstr("keeps state in 'calls'"));
  EXPECT_TRUE(std::holds_alternative<Kernel>(parse_gate(counting, target, Gates::WithoutPolicy)));
}

TEST(Duel, AKernelDoesNotBeatItself) {
  WorkerClient worker(EVO_FAKE_WORKER, {}, WorkerDeadlines{});
  const Contender same{.id = "a", .library = "4"};
  const Duel result = duel(worker, same, same, sizes, std::chrono::seconds(10), {});
  EXPECT_EQ(result.decision, Decision::NotFaster);
  EXPECT_THAT(result.estimate.ratio, DoubleNear(1, 1e-9));
}

} // namespace
} // namespace evo
