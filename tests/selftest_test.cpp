// The self-test over a judge that is known to be right, and over wrong ones.
#include "population/selftest.hpp"

#include <chrono>

#include <gmock/gmock.h>

#include "tests/support/fake_search.hpp"

namespace evo {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

/// Refuses b = 7 by policy; behind that, b = 7 computes what it should.
class World : public fake::World {
public:
  std::variant<Built, BuildFailure> build(const Genome& genome, std::stop_token stop,
                                          Gates gates) const override {
    if (gates == Gates::All && fake::value(genome.source, "b") == 7) {
      return BuildFailure{Verdict::RefusedByPolicy, "b is 7"};
    }
    return fake::World::build(genome, stop, gates);
  }
};

Trial cheat(const std::string& name, int a, int b, const Verdicts& expected,
            Gates gates = Gates::All) {
  return {.name = name, .source = fake::source(a, b), .expected = expected, .gates = gates};
}

Trial good(const std::string& name, int a, int b) {
  return {.name = name, .source = fake::source(a, b), .expected = {Verdict::Ok}, .good = true};
}

SelftestReport run(FitnessEvaluator& world, const std::vector<Trial>& trials,
                   std::stop_token stop = {}) {
  return run_selftest(world, trials, 4, [](const TrialResult&) {}, std::move(stop));
}

TEST(Selftest, ARightJudgePasses) {
  World world;
  world.longest_delay = 1ms;
  const SelftestReport report = run(
      world,
      {good("seed", 1, 0), cheat("no build", 4, 0, {Verdict::NoBuild}),
       cheat("wrong", 6, 0, {Verdict::Race, Verdict::WrongAnswer}),
       cheat("hangs", 1, 9, {Verdict::Hang}), cheat("refused", 2, 7, {Verdict::RefusedByPolicy}),
       cheat("refused", 6, 7, {Verdict::WrongAnswer}, Gates::WithoutPolicy), good("bred 1", 3, 0)});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.specimens(), 4);
  EXPECT_EQ(report.caught(), 4);
  EXPECT_EQ(report.good(), 2);
  EXPECT_EQ(report.false_alarms(), 0);
  EXPECT_THAT(to_line(report), StartsWith("caught 4 of 4, 0 false alarms in 2, 0:0"));
}

TEST(Selftest, AMissedCheatAndAFalseAlarmFail) {
  World world;
  const SelftestReport missed = run(world, {cheat("sly", 1, 0, {Verdict::WrongAnswer})});
  EXPECT_FALSE(missed.passed());
  EXPECT_EQ(missed.caught(), 0);
  EXPECT_THAT(to_line(missed.results.at(0)), HasSubstr("MISSED"));

  const SelftestReport alarm = run(world, {good("seed", 6, 0)});
  EXPECT_FALSE(alarm.passed());
  EXPECT_EQ(alarm.false_alarms(), 1);
  EXPECT_THAT(to_line(alarm.results.at(0)), HasSubstr("FALSE ALARM"));
  EXPECT_THAT(to_line(alarm.results.at(0)), HasSubstr("a is 6"));
}

TEST(Selftest, ASpecimenIsCaughtByEveryGateItNamesOrNotAtAll) {
  World world;
  const SelftestReport report =
      run(world, {cheat("sly", 2, 7, {Verdict::RefusedByPolicy}),
                  cheat("sly", 2, 7, {Verdict::Suspicious}, Gates::WithoutPolicy)});
  EXPECT_EQ(report.specimens(), 1);
  EXPECT_EQ(report.caught(), 0);
  EXPECT_THAT(to_line(report.results.at(1)), HasSubstr("sly, policy skipped"));
}

TEST(Selftest, TheBestGoodKernelIsTheIncumbentAndACheatNeverIs) {
  struct Watching : World {
    std::vector<double> incumbents; // their speed-ups
    Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                    std::stop_token stop) override {
      incumbents.push_back(incumbent == nullptr ? 0 : incumbent->fitness.speedup);
      return World::judge(genome, built, incumbent, stop);
    }
  };
  Watching world;
  run(world, {good("slow", 1, 0), good("fast", 3, 0), cheat("sly", 9, 0, {Verdict::WrongAnswer}),
              good("slower", 2, 0)});
  EXPECT_THAT(world.incumbents, ElementsAre(0, 2, 4, 4));
}

TEST(Selftest, ACheatThatJudgingMissesIsVerified) {
  struct Thorough : World {
    VerifyResponse verify(const Genome&, const Built&, bool, std::stop_token) override {
      return {.verdict = Verdict::NonDeterministic, .detail = {}, .verification = {}};
    }
  };
  Thorough world;
  EXPECT_TRUE(
      run(world, {good("seed", 1, 0), cheat("sly", 2, 0, {Verdict::NonDeterministic})}).passed());
}

TEST(Selftest, TheJudgeIsToldNoNames) {
  World world;
  world.on_judge = [](const Genome& genome) {
    EXPECT_EQ(genome.seed.find("sly"), std::string::npos);
    EXPECT_EQ(genome.source.find("sly"), std::string::npos);
  };
  EXPECT_EQ(run(world, {cheat("sly", 1, 0, {Verdict::Race})}).results.size(), 1u);
}

TEST(Selftest, AStopFailsIt) {
  World world;
  std::stop_source stop;
  world.on_judge = [&](const Genome&) { stop.request_stop(); };
  const SelftestReport report =
      run(world, {good("seed", 1, 0), good("other", 2, 0)}, stop.get_token());
  EXPECT_FALSE(report.passed());
  EXPECT_TRUE(report.results.empty());
  EXPECT_THAT(to_line(report), StartsWith("stopped; "));
}

TEST(Selftest, IsRecorded) {
  World world;
  const auto record = to_record(run(world, {cheat("sly", 1, 0, {Verdict::Race, Verdict::Crash})}));
  EXPECT_EQ(record.at("passed"), false);
  EXPECT_EQ(record.at("caught"), 0);
  const auto& trial = record.at("trials").at(0);
  EXPECT_EQ(trial.at("name"), "sly");
  EXPECT_EQ(trial.at("expected"), (nlohmann::json{"race", "crash"}));
  EXPECT_EQ(trial.at("got"), "ok");
  EXPECT_EQ(trial.at("gates"), "all");
}

TEST(SpecimenTrials, RunOnTheModelOnlyWhereTheySaySo) {
  const Specimen everywhere{.name = "a",
                            .source = "a",
                            .expected = {Verdict::RefusedByPolicy},
                            .behind_policy = {Verdict::Crash},
                            .on_model = {Verdict::NoParse}};
  const Specimen card_only{
      .name = "b", .source = "b", .expected = {Verdict::Hang}, .behind_policy = {}, .on_model = {}};
  const std::vector<Trial> card = specimen_trials({everywhere, card_only}, true);
  ASSERT_EQ(card.size(), 3u);
  EXPECT_EQ(card[0].gates, Gates::All);
  EXPECT_EQ(card[1].gates, Gates::WithoutPolicy);
  EXPECT_THAT(card[1].expected, ElementsAre(Verdict::Crash));
  EXPECT_EQ(card[2].name, "b");
  const std::vector<Trial> model = specimen_trials({everywhere, card_only}, false);
  ASSERT_EQ(model.size(), 1u);
  EXPECT_THAT(model[0].expected, ElementsAre(Verdict::NoParse));
}

TEST(BredTrials, DescendFromEverySeedInTurn) {
  const std::vector<Genome> seeds{
      seed_genome("ab.cu", fake::source(1, 1)),
      seed_genome("cd.cu", "constexpr int only_here = 3;\n" + fake::source(1, 1))};
  std::vector<bool> from_second;
  for (const Trial& trial : bred_trials(seeds, fake::dialect(), 6)) {
    from_second.push_back(trial.source.find("only_here") != std::string::npos);
  }
  EXPECT_THAT(from_second, ElementsAre(false, true, false, true, false, true));
}

TEST(BredTrials, AreDistinctAndTheSameEveryTime) {
  const std::vector<Genome> seeds{seed_genome("ab.cu", fake::source(1, 1))};
  const auto sources = [&] {
    std::vector<std::string> result;
    for (const Trial& trial : bred_trials(seeds, fake::dialect(), 10)) {
      EXPECT_TRUE(trial.good);
      result.push_back(trial.source);
    }
    return result;
  };
  const std::vector<std::string> bred = sources();
  EXPECT_EQ(std::set(bred.begin(), bred.end()).size(), 10u);
  EXPECT_EQ(bred, sources());
  const std::vector<Genome> barren{seed_genome("x.cu", "int x;\n")};
  EXPECT_THROW(bred_trials(barren, fake::dialect(), 1), std::runtime_error);
}

} // namespace
} // namespace evo
