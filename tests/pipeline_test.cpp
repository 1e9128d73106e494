#include "population/pipeline.hpp"

#include <numeric>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fitness/problem.hpp"
#include "fitness/worker_client.hpp"
#include "tests/support/fake_search.hpp"

namespace evo {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

const PipelineEvents ignore{.better = [](const Individual&) {}, .settled = [](const auto&) {}};

Pipeline::Propose propose(int a, int b) {
  return [a, b] { return Proposal{seed_genome("ab.cu", fake::source(a, b)), {}, {}, {}, {}}; };
}

std::vector<Verdict> verdicts(const std::vector<Individual>& individuals) {
  std::vector<Verdict> result;
  for (const Individual& individual : individuals) {
    result.push_back(individual.verdict());
  }
  return result;
}

TEST(Pipeline, GivesEachKindOfFailureItsVerdict) {
  fake::World world;
  Pipeline pipeline(world, 2, {}, ignore);
  pipeline.submit(1, 0, {propose(1, 0), propose(4, 0), propose(6, 0), propose(1, 9), [] {
                           return Proposal{
                               seed_genome("ab.cu", fake::source(1, 0)), {}, {}, {}, "broken"};
                         }});
  const auto results = pipeline.wait();
  EXPECT_THAT(verdicts(results), ElementsAre(Verdict::Ok, Verdict::NoBuild, Verdict::WrongAnswer,
                                             Verdict::Hang, Verdict::Fault));
  EXPECT_EQ(results[1].fitness.detail, "a is 4");
  EXPECT_FALSE(results[1].built);
  EXPECT_TRUE(results[2].built);
  EXPECT_EQ(results[4].fitness.detail, "broken");
  EXPECT_EQ(results[0].kernels.at("f").registers, 1);
}

TEST(Pipeline, NeverJudgesADuplicateAndTheLowestSlotIsTheOriginal) {
  for (int round = 0; round < 20; ++round) {
    fake::World world;
    world.longest_delay = 1ms;
    Pipeline pipeline(world, 8, {}, ignore);
    // 1 and 3 are of one source, 1 and 2 of one binary; 4 and 5 fail alike.
    pipeline.submit(
        1, 0,
        {propose(2, 0), propose(1, 0), propose(1, 1), propose(1, 0), propose(6, 0), propose(6, 1)});
    const auto results = pipeline.wait();
    ASSERT_THAT(verdicts(results),
                ElementsAre(Verdict::Ok, Verdict::Ok, Verdict::Duplicate, Verdict::Duplicate,
                            Verdict::WrongAnswer, Verdict::Duplicate));
    EXPECT_EQ(world.builds, 5);
    EXPECT_EQ(world.judgements, 3);
    EXPECT_EQ(results[2].duplicate_of, results[1].genome.id);
    EXPECT_EQ(results[2].fitness.speedup, results[1].fitness.speedup);
    EXPECT_EQ(results[3].duplicate_of, results[1].genome.id);
    EXPECT_EQ(results[5].fitness.verdict, Verdict::WrongAnswer);
  }
}

TEST(Pipeline, KnowsDuplicatesOfEarlierBatches) {
  fake::World world;
  Pipeline pipeline(world, 2, {}, ignore);
  pipeline.submit(0, 0, {propose(1, 0)});
  pipeline.submit(1, 0, {propose(1, 0)});
  pipeline.wait();
  EXPECT_THAT(verdicts(pipeline.wait()), ElementsAre(Verdict::Duplicate));
}

TEST(Pipeline, AnnouncesEachBetterOneInSlotOrder) {
  fake::World world;
  world.longest_delay = 2ms;
  std::vector<int> better;
  std::vector<int> settled;
  Pipeline pipeline(world, 16, {},
                    {.better = [&](const Individual& i) { better.push_back(i.slot); },
                     .settled = [&](const Individual& i) { settled.push_back(i.slot); }});
  pipeline.submit(1, 10,
                  {propose(2, 0), propose(1, 0), propose(3, 0), propose(6, 0), propose(5, 0)});
  const auto results = pipeline.wait();
  EXPECT_THAT(better, ElementsAre(10, 12, 14));
  EXPECT_THAT(settled, ElementsAre(10, 11, 12, 13, 14));
  EXPECT_TRUE(results[4].elite);
  EXPECT_FALSE(results[1].elite);
}

TEST(Pipeline, BuildsSideBySideAndWhileTheJudgeIsBusy) {
  fake::World world;
  world.longest_delay = 4ms;
  Pipeline pipeline(world, 4, {}, ignore);
  for (int batch = 0; batch < 2; ++batch) {
    std::vector<Pipeline::Propose> proposals;
    for (int a : {0, 1, 2, 3, 5, 7, 8, 9}) {
      proposals.push_back(propose(a, 3 * batch));
    }
    pipeline.submit(batch, 0, std::move(proposals));
  }
  pipeline.wait();
  pipeline.wait();
  EXPECT_GT(world.most_builds_at_once, 1);
  EXPECT_LE(world.most_builds_at_once, 4);
  EXPECT_GT(world.builds_during_judgements, 0);
}

TEST(Pipeline, KeepsTheIncumbentsNewTimeWhenItWasTimedAgain) {
  class Retimed : public fake::World {
    Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                    std::stop_token stop) override {
      Judgement judgement = World::judge(genome, built, incumbent, stop);
      if (incumbent != nullptr) {
        judgement.incumbent = incumbent->fitness;
        judgement.incumbent->speedup = 5; // it was underrated
      }
      return judgement;
    }
  } world;
  Pipeline pipeline(world, 1, {}, ignore);
  pipeline.submit(1, 0, {propose(1, 0), propose(3, 0), propose(7, 0)});
  const auto results = pipeline.wait();
  EXPECT_FALSE(results[1].elite);
  EXPECT_TRUE(results[2].elite);
}

TEST(Pipeline, MakesNoEliteOfAScreening) {
  class Screening : public fake::World {
    Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                    std::stop_token stop) override {
      Judgement judgement = World::judge(genome, built, incumbent, stop);
      judgement.confirmed = fake::value(genome.source, "a") != 7;
      return judgement;
    }
  } world;
  Pipeline pipeline(world, 1, {}, ignore);
  pipeline.submit(1, 0, {propose(1, 0), propose(7, 0), propose(3, 0)});
  const auto results = pipeline.wait();
  EXPECT_EQ(results[1].fitness.speedup, 8);
  EXPECT_FALSE(results[1].elite);
  EXPECT_TRUE(results[2].elite);
}

TEST(Pipeline, AfterAStopReturnsWhatWasFinished) {
  fake::World world;
  std::stop_source stop;
  int judged = 0;
  world.on_judge = [&](const Genome&) { judged += judged == 1 && stop.request_stop() ? 1 : 1; };
  Pipeline pipeline(world, 2, stop.get_token(), ignore);
  pipeline.submit(1, 0, {propose(1, 0), propose(2, 0), propose(3, 0), propose(5, 0)});
  EXPECT_THAT(verdicts(pipeline.wait()), ElementsAre(Verdict::Ok, Verdict::Ok));
  EXPECT_EQ(world.judgements, 2);
}

TEST(Pipeline, RethrowsWhatWentWrongAnywhere) {
  const auto fail = [](auto&&...) { throw std::runtime_error("disk full"); };
  fake::World world;
  {
    Pipeline pipeline(world, 2, {}, {.better = fail, .settled = [](const auto&) {}});
    pipeline.submit(1, 0, {propose(1, 0), propose(2, 0)});
    EXPECT_THROW(pipeline.wait(), std::runtime_error);
  }
  Pipeline pipeline(world, 2, {}, ignore);
  pipeline.submit(1, 0, {propose(1, 0), [] { return throw InputError("no disk"), Proposal{}; }});
  EXPECT_THROW(pipeline.wait(), InputError);
}

/// Some of whose work throws.
class Throwing : public fake::World {
public:
  std::variant<Built, BuildFailure> build(const Genome& genome, std::stop_token stop,
                                          Gates gates) const override {
    if (fake::value(genome.source, "a") == 7) {
      throw std::bad_alloc();
    }
    return World::build(genome, stop, gates);
  }
  Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                  std::stop_token stop) override {
    switch (fake::value(genome.source, "a")) {
    case 8:
      throw std::logic_error("judged badly");
    case 9:
      throw NoWorker("no card");
    default:
      return World::judge(genome, built, incumbent, stop);
    }
  }
};

TEST(Pipeline, OneBadChildCostsItsSlotAndIsCountedByStageAndKind) {
  Throwing world;
  Pipeline pipeline(world, 2, {}, ignore);
  pipeline.submit(1, 0,
                  {[] { return throw std::out_of_range("bred badly"), Proposal{}; }, propose(7, 0),
                   propose(8, 0), propose(4, 0), propose(6, 0), propose(1, 0)});
  const auto results = pipeline.wait();
  EXPECT_THAT(verdicts(results), ElementsAre(Verdict::Fault, Verdict::Fault, Verdict::Fault,
                                             Verdict::NoBuild, Verdict::WrongAnswer, Verdict::Ok));
  EXPECT_EQ(results[0].fitness.detail, "bred badly");
  Failures failures;
  for (const Individual& individual : results) {
    count(failures, individual);
  }
  EXPECT_EQ(to_string(failures),
            "propose: fault 1; build: no build 1, fault 1; judge: wrong answer 1, fault 1");
  pipeline.submit(2, 0, {propose(9, 0)});
  EXPECT_THROW(pipeline.wait(), NoWorker) << "that is no candidate's fault";
}

TEST(Pipeline, MayBeLeftWithWorkUnderWay) {
  fake::World world;
  world.longest_delay = 5ms;
  Pipeline pipeline(world, 2, {}, ignore);
  pipeline.submit(1, 0, {propose(1, 0), propose(2, 0), propose(3, 0)});
}

} // namespace
} // namespace evo
