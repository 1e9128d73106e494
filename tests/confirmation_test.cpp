// The final of a run, and what is told of times; the worker is a fake one.
#include "population/confirmation.hpp"

#include <gmock/gmock.h>

#include "population/timing_report.hpp"

namespace evo {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::vector<int> sizes{64, 65};

/// A kernel that the search took for one of 4 / `searched_ms`, and what it does in the final.
Individual individual(const std::string& id, double searched_ms, const std::string& in_the_final) {
  Individual result;
  result.genome.id = id;
  result.genome.source = "1 then " + in_the_final;
  result.fitness.verdict = Verdict::Ok;
  for (const int size : sizes) {
    result.fitness.sizes.push_back({.size = size, .median_ms = searched_ms, .reference_ms = 4});
  }
  result.fitness.speedup = geometric_mean_speedup(result.fitness.sizes);
  return result;
}

/// Builds to a library that is called like the source.
class Builds : public FitnessEvaluator {
public:
  std::variant<Built, BuildFailure> build(const Genome& genome, std::stop_token,
                                          Gates) const override {
    return Built{.library = genome.source, .binary_digest = {}, .kernels = {}, .probe_sizes = {}};
  }
  Judgement judge(const Genome&, const Built&, const Incumbent*, std::stop_token) override {
    return {};
  }
  VerifyResponse verify(const Genome& genome, const Built&, bool full, std::stop_token) override {
    VerifyResponse response;
    const bool fails = genome.id == fails_ || (full && genome.id == fails_in_full_);
    response.fail(fails ? Verdict::WrongAnswer : Verdict::Ok, fails ? "in a case" : "");
    return response;
  }

  std::string fails_; // ids
  std::string fails_in_full_;
};

class Final : public testing::Test {
protected:
  void add(Individual individual, bool elite = false) {
    individual.elite = elite;
    archive_.add(std::move(individual));
  }

  std::optional<Confirmation> hold() { return confirm(archive_, builds_, worker_, sizes, {}); }

  Builds builds_;
  Archive archive_;
  WorkerClient worker_{EVO_FAKE_WORKER, {}, WorkerDeadlines{}};
};

TEST_F(Final, TellsHowMuchTheSearchsFigureShrank) {
  add(individual("winner00", 5, "5.05"), true);
  const auto confirmation = hold();
  ASSERT_TRUE(confirmation);
  EXPECT_EQ(confirmation->winner, 0u);
  EXPECT_THAT(confirmation->finalists.at(0).speedup.ratio, DoubleNear(0.792, 0.001));
  EXPECT_THAT(report(*confirmation),
              HasSubstr("The search measured 0.800x, confirmed 0.792x (-1.0 %)"));
  const nlohmann::json record = to_record(*confirmation);
  EXPECT_EQ(record.at("id"), "winner00");
  EXPECT_NEAR(record.at("finalists").at(0).at("shrinkage_percent").get<double>(), 1, 0.02);
}

TEST_F(Final, IsHeldInAFreshProcess) {
  worker_.prepare();
  add(individual("winner00", 4, "4"), true);
  ASSERT_TRUE(hold());
  EXPECT_EQ(worker_.restarts(), 1);
}

TEST_F(Final, HasTheWinnerAndTheFittestOthers) {
  add(individual("slow0000", 9, "9"));
  add(individual("winner00", 4, "4"), true);
  for (const char* id : {"b0000000", "c0000000", "d0000000", "e0000000"}) {
    add(individual(id, 3.9, "4.2")); // screened well, never confirmed
  }
  Individual duplicate = individual("f0000000", 3, "3");
  duplicate.duplicate_of = "b0000000";
  add(duplicate);
  Individual wrong = individual("g0000000", 3, "3");
  wrong.fitness = {.verdict = Verdict::WrongAnswer, .detail = {}, .sizes = {}};
  add(wrong);
  const auto confirmation = hold();
  ASSERT_TRUE(confirmation);
  std::vector<std::string> ids;
  for (const Finalist& finalist : confirmation->finalists) {
    ids.push_back(finalist.individual.genome.id);
  }
  EXPECT_THAT(ids, ElementsAre("winner00", "b0000000", "c0000000", "d0000000", "e0000000"));
  EXPECT_EQ(confirmation->winner, 0u) << "the others only looked faster";
}

TEST_F(Final, WhoWasNeverVerifiedIsSoBefore) {
  add(individual("winner00", 4, "4"), true);
  add(individual("other000", 4.05, "3"));
  builds_.fails_ = "other000";
  const auto confirmation = hold();
  ASSERT_TRUE(confirmation);
  EXPECT_THAT(confirmation->finalists, SizeIs(1));
  EXPECT_THAT(confirmation->failures,
              ElementsAre("other000 failed in the final: wrong answer: in a case"));
}

TEST_F(Final, TheWinnerIsVerifiedInFull) {
  add(individual("winner00", 4, "4.1"), true);
  add(individual("other000", 4.05, "4"));
  builds_.fails_in_full_ = "other000";
  const auto confirmation = hold();
  ASSERT_TRUE(confirmation);
  EXPECT_EQ(confirmation->finalists.at(confirmation->winner).individual.genome.id, "winner00");
  EXPECT_THAT(confirmation->failures, SizeIs(1));
}

TEST_F(Final, IsNotHeldWhenNobodyIsRight) {
  add(individual("winner00", 4, "4"), true);
  builds_.fails_in_full_ = "winner00";
  EXPECT_FALSE(hold());
}

TEST_F(Final, AnotherWinsWhenItIsFasterBeyondDoubt) {
  add(individual("winner00", 4, "4.1"), true);
  add(individual("other000", 4.05, "4"));
  add(individual("better00", 4.1, "3.9"));
  const auto confirmation = hold();
  ASSERT_TRUE(confirmation);
  const Finalist& winner = confirmation->finalists.at(confirmation->winner);
  EXPECT_EQ(winner.individual.genome.id, "better00");
  EXPECT_THAT(winner.confirmed.sizes.at(0).median_ms, DoubleNear(3.9, 0.01));
  EXPECT_THAT(report(*confirmation), HasSubstr("The export is better00 now: 1.051x"));
}

TEST_F(Final, WhoFailsIsOutAndTheOthersGoOn) {
  add(individual("winner00", 4, "4"), true);
  add(individual("cheats00", 4.1, "suspicious"));
  const auto confirmation = hold();
  ASSERT_TRUE(confirmation);
  EXPECT_THAT(confirmation->finalists, SizeIs(1));
  EXPECT_THAT(report(*confirmation),
              HasSubstr("cheats00 failed in the final: suspicious: found out"));
}

TEST_F(Final, ADeathOfTheWorkerEndsIt) {
  add(individual("winner00", 4, "crash"), true);
  EXPECT_FALSE(hold());
}

TimedBlock block_with(std::optional<Conditions> conditions) {
  TimedBlock block;
  block.conditions = std::move(conditions);
  return block;
}

TEST(TimingReport, NamesTheConditions) {
  Conditions hot{.sm_clock_mhz = 1755,
                 .memory_clock_mhz = 3201,
                 .temperature_c = 52,
                 .power_w = 610,
                 .throttled = {"power cap"}};
  EXPECT_EQ(describe_conditions({block_with(hot)}),
            "1755 MHz, memory 3201 MHz, 52 C, 610 W, power cap");
  hot.slowed = true;
  EXPECT_THAT(describe_conditions({block_with(hot), block_with(Conditions{})}),
              HasSubstr("1 of 2 blocks were slowed"));
  EXPECT_THAT(describe_conditions({block_with({})}), HasSubstr("not known"));
}

Duel duel_of(Decision decision) {
  Duel duel;
  duel.decision = decision;
  duel.estimate = {.ratio = 1.01, .low = 1.005, .high = 1.015};
  duel.blocks.resize(4);
  return duel;
}

TEST(TimingReport, NamesTheDecisionOfOneDuelAndTheRateOfMany) {
  Tournament tournament;
  EXPECT_EQ(describe(tournament, "a.cu", "b.cu", false), "No duel was fought.\n");
  tournament.add(duel_of(Decision::Faster));
  EXPECT_EQ(describe(tournament, "a.cu", "b.cu", false),
            "a.cu against b.cu: 1.010x (1.005 to 1.015) as fast after 4 blocks: faster\n");
  tournament.add(duel_of(Decision::NotFaster));
  EXPECT_EQ(describe(tournament, "a.cu", "b.cu", false),
            "a.cu against b.cu: faster in 1 of 2 trials, 50.0 %, after 4.0 blocks each\n");
  EXPECT_EQ(describe(tournament, "a.cu", "a.cu", true),
            "a.cu against itself: false wins in 1 of 2 trials, 50.0 %, after 4.0 blocks each\n");
}

} // namespace
} // namespace evo
