#include "population/climb.hpp"

#include <gmock/gmock.h>

#include "fitness/problem.hpp"
#include "tests/support/fake_search.hpp"

namespace evo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Genome seed = seed_genome("seed.cu", fake::source(0, 0));
const Gene more_a_1{"more_a", "a 1"};
const Gene more_b_1{"more_b", "b 1"};
const Gene more_a_2{"more_a", "a 2"};

Problem problem() {
  Problem problem;
  problem.vary = "n";
  problem.sizes = {64};
  problem.flops = {{2000, {"n", "n", "n"}}};
  return problem;
}

std::vector<std::string> labels(const std::vector<Rung>& rungs) {
  std::vector<std::string> result;
  for (const Rung& rung : rungs) {
    result.push_back(rung.label);
  }
  return result;
}

TEST(Climb, HasARungForTheSeedAndEachGene) {
  const auto rungs = climb(seed, {more_a_1, more_b_1}, fake::dialect());
  EXPECT_THAT(labels(rungs), ElementsAre("seed.cu", "more_a: a 1", "more_b: b 1"));
  EXPECT_EQ(rungs.back().genome.source, fake::source(1, 1));
}

TEST(Climb, NamesTheGeneThatDoesNotApply) {
  try {
    climb(seed, {more_a_1, more_a_1}, fake::dialect());
    FAIL() << "a rises once";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("gene 2 of the trail, more_a: a 1, does not apply"));
  }
}

TEST(Climb, LeavesOutEachGeneWithThoseThatNeedIt) {
  const auto rungs = ablation(seed, {more_a_1, more_b_1, more_a_2}, fake::dialect());
  ASSERT_EQ(rungs.size(), 4);
  EXPECT_EQ(rungs[0].genome.source, fake::source(2, 1));
  EXPECT_EQ(rungs[1].label, "without more_a: a 1");
  EXPECT_EQ(rungs[1].genome.source, fake::source(0, 1));
  EXPECT_THAT(rungs[1].dropped, ElementsAre(more_a_2));
  EXPECT_EQ(rungs[2].genome.source, fake::source(2, 0));
  EXPECT_EQ(rungs[3].genome.source, fake::source(1, 1));
}

TEST(Climb, TellsWhatEachStepGains) {
  fake::World world;
  auto rungs = climb(seed, {more_a_1, more_b_1, more_a_2}, fake::dialect());
  judge(rungs, world, 2, {});
  const std::string table = climb_table(rungs, problem());
  EXPECT_THAT(table, HasSubstr("| seed.cu | 1.000 | 0.5 | 1.000 | – |"));
  EXPECT_THAT(table, HasSubstr("| more_a: a 1 | 0.500 | 1.0 | 2.000 | 2.000 |"));
  EXPECT_THAT(table, HasSubstr("| more_b: b 1 | 0.500 | 1.0 | 2.000 | 1.000 |"));
  EXPECT_THAT(table, HasSubstr("| more_a: a 2 | 0.333 | 1.6 | 3.000 | 1.500 |"));
}

TEST(Climb, ComparesWhatIsLeftWithTheWhole) {
  fake::World world;
  auto rungs = ablation(seed, {more_a_1, more_b_1, more_a_2}, fake::dialect());
  judge(rungs, world, 1, {});
  const std::string table = ablation_table(rungs, problem());
  EXPECT_THAT(table,
              HasSubstr("| without more_a: a 1, nor more_a: a 2 | 1.000 | 0.5 | 1.000 | 0.333 |"));
  EXPECT_THAT(table, HasSubstr("| without more_b: b 1 | 0.333 | 1.6 | 3.000 | 1.000 |"));
}

TEST(Climb, ShowsWhatFailsOnTheWay) {
  fake::World world;
  const Genome before = seed_genome("seed.cu", fake::source(3, 0));
  auto rungs = climb(before, {{"more_a", "a 4"}, {"more_a", "a 5"}}, fake::dialect());
  judge(rungs, world, 1, {});
  const std::string table = climb_table(rungs, problem());
  EXPECT_THAT(table, HasSubstr("| more_a: a 4 | – | – | – | no build: a is 4 |"));
  EXPECT_THAT(table, HasSubstr("| 6.000 | – |"));
}

} // namespace
} // namespace evo
