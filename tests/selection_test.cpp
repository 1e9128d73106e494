#include "population/selection.hpp"

#include <map>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "population/variation.hpp"
#include "tests/support/fake_search.hpp"

namespace evo {
namespace {

using testing::ElementsAre;

Individual individual(std::string id, double speedup, Verdict verdict = Verdict::Ok) {
  Individual result;
  result.genome.id = std::move(id);
  result.fitness.verdict = verdict;
  result.fitness.speedup = speedup;
  return result;
}

std::vector<std::string> ids(const std::vector<Individual>& individuals) {
  std::vector<std::string> result;
  for (const Individual& each : individuals) {
    result.push_back(each.genome.id);
  }
  return result;
}

TEST(Random, IsAFunctionOfSeedGenerationAndSlot) {
  EXPECT_EQ(random_for(1, 2, 3)(), random_for(1, 2, 3)());
  EXPECT_NE(random_for(1, 2, 3)(), random_for(1, 3, 2)());
  EXPECT_NE(random_for(1, 2, 3)(), random_for(2, 2, 3)());
  EXPECT_NE(random_for(1, 2, 3)(), random_for(1, 2, 4)());
}

TEST(Random, PicksUniformly) {
  Random random = random_for(1, 1, 1);
  std::map<std::size_t, int> counts;
  for (int i = 0; i < 3000; ++i) {
    ++counts[pick(random, 3)];
  }
  ASSERT_EQ(counts.size(), 3U);
  for (const auto& [value, count] : counts) {
    EXPECT_NEAR(count, 1000, 100) << value;
  }
}

TEST(Tournament, PrefersTheFitterButLetsOthersWin) {
  const std::vector<Individual> members{individual("slow", 1), individual("middle", 2),
                                        individual("fast", 3)};
  std::map<std::string, int> wins;
  for (int slot = 0; slot < 600; ++slot) {
    Random random = random_for(1, 1, slot);
    ++wins[tournament(members, 2, random).genome.id];
  }
  EXPECT_GT(wins["fast"], wins["middle"]);
  EXPECT_GT(wins["middle"], wins["slow"]);
  EXPECT_GT(wins["slow"], 0);
}

TEST(Survivors, AreTheFittestOfBothWithoutFailuresOrDuplicates) {
  Individual duplicate = individual("copy", 9);
  duplicate.duplicate_of = "elite";
  const auto result = survivors({individual("elite", 9), individual("old", 1)},
                                {individual("wrong", 0, Verdict::WrongAnswer), duplicate,
                                 individual("new", 5), individual("elite", 9)},
                                2);
  EXPECT_THAT(ids(result), ElementsAre("elite", "new"));
}

TEST(Survivors, WithEqualSpeedupsDoNotDependOnTheOrderOfArrival) {
  const Individual a = individual("a", 1);
  const Individual b = individual("b", 1);
  EXPECT_EQ(ids(survivors({a}, {b}, 2)), ids(survivors({b}, {a}, 2)));
}

Individual in_niche(std::string id, double speedup, PrecisionClass precision, int registers) {
  Individual result = individual(std::move(id), speedup);
  result.kernels["f"] = {
      .registers = registers, .shared_bytes = 0, .spill_bytes = 0, .products = {{precision, 1}}};
  return result;
}

TEST(Survivors, KeepTheFittestOfEveryNicheToo) {
  const auto result = survivors({in_niche("fast", 9, PrecisionClass::Ffma, 255),
                                 in_niche("next", 8, PrecisionClass::Ffma, 250),
                                 in_niche("third", 7, PrecisionClass::Ffma, 240)},
                                {in_niche("small", 3, PrecisionClass::Ffma, 64),
                                 in_niche("smaller", 2, PrecisionClass::Ffma, 40),
                                 in_niche("tensor", 1, PrecisionClass::Bf16, 255)},
                                2);
  EXPECT_THAT(ids(result), ElementsAre("fast", "next", "small", "tensor"));
}

/// Right about what is timed, wrong in another case.
Individual frail(std::string id, double speedup, PrecisionClass precision) {
  Individual result = in_niche(std::move(id), 0, precision, 255);
  result.fitness = failed(Verdict::WrongAnswer, "in the case", true);
  result.fitness.frail_speedup = speedup;
  return result;
}

TEST(Survivors, KeepTheFittestFrailOnesAsParentsAlone) {
  const std::vector<Individual> members{in_niche("fast", 2, PrecisionClass::Ffma, 255)};
  const auto result =
      survivors(members,
                {frail("frailer", 8, PrecisionClass::Bf16), frail("frail", 9, PrecisionClass::Bf16),
                 individual("wrong", 0, Verdict::WrongAnswer)},
                3);
  EXPECT_THAT(ids(result), ElementsAre("fast", "frail"));
  EXPECT_FALSE(result.back().viable());
  EXPECT_EQ(result.back().pace(), 9);
  Random random = random_for(1, 1, 1);
  std::set<std::string> parents;
  for (int i = 0; i < 50; ++i) {
    parents.insert(choose_parent(result, random).genome.id);
  }
  EXPECT_THAT(parents, testing::UnorderedElementsAre("fast", "frail"));
}

TEST(Verified, KeepsThePaceOfWhatOnlyTheVerificationFails) {
  Fitness timed{.verdict = Verdict::Ok, .detail = {}, .sizes = {}, .speedup = 3};
  VerifyResponse wrong;
  wrong.fail(Verdict::WrongAnswer, "in a case");
  const Fitness frail_fitness = verified(timed, wrong);
  EXPECT_EQ(frail_fitness.verdict, Verdict::WrongAnswer);
  EXPECT_EQ(frail_fitness.speedup, 0);
  EXPECT_EQ(frail_fitness.frail_speedup, 3);
  VerifyResponse crash;
  crash.fail(Verdict::Crash, "gone");
  EXPECT_EQ(verified(timed, crash).frail_speedup, 0);
  EXPECT_EQ(verified(timed, {}).frail_speedup, 0);
}

TEST(Parents, AreHalfOfTheTimeOfAnyNiche) {
  const std::vector<Individual> members{in_niche("fast", 9, PrecisionClass::Ffma, 255),
                                        in_niche("next", 8, PrecisionClass::Ffma, 255),
                                        in_niche("third", 7, PrecisionClass::Ffma, 255),
                                        in_niche("tensor", 1, PrecisionClass::Bf16, 255)};
  Random random = random_for(1, 1, 1);
  int tensor = 0;
  for (int i = 0; i < 400; ++i) {
    tensor += choose_parent(members, random).genome.id == "tensor" ? 1 : 0;
  }
  EXPECT_NEAR(tensor, 100, 40);
}

TEST(Credit, GoesToWhatMadeChildrenFasterLately) {
  Credit credit;
  EXPECT_EQ(credit.weight("any"), credit.weight("other"));
  credit.add({{"good", 0.5}, {"bad", 0}, {"bad", 0}});
  EXPECT_GT(credit.weight("good"), credit.weight("untried"));
  EXPECT_LT(credit.weight("bad"), credit.weight("untried"));
  EXPECT_GT(credit.weight("bad"), 0);
  const double before = credit.weight("good");
  for (int generation = 0; generation < 100; ++generation) {
    credit.add({});
  }
  EXPECT_LT(credit.weight("good"), before);
  EXPECT_NEAR(credit.weight("good"), credit.weight("untried"), 1e-3);
}

TEST(Mutate, FollowsCredit) {
  const Genome parent = seed_genome("ab.cu", fake::source(1, 1));
  Credit credit;
  credit.add({{"more_b", 1}, {"more_b", 1}, {"more_b", 1}});
  int more_b = 0;
  for (int slot = 0; slot < 100; ++slot) {
    Random random = random_for(1, 1, slot);
    more_b += mutate(parent, fake::dialect(), credit, random).trail.back().mutator == "more_b";
  }
  EXPECT_GT(more_b, 60);
  EXPECT_LT(more_b, 100);
}

TEST(Mutate, ChoosesUniformlyAmongTheMutatorsThatApply) {
  const Genome parent = seed_genome("ab.cu", fake::source(0, 1)); // less_a does not apply
  std::map<std::string, int> counts;
  for (int slot = 0; slot < 100; ++slot) {
    Random random = random_for(1, 1, slot);
    ++counts[mutate(parent, fake::dialect(), {}, random).trail.back().mutator];
  }
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_NEAR(counts["more_a"], 50, 20);
}

TEST(Mutate, GivesTheParentWhenNothingApplies) {
  const Genome parent = seed_genome("c.cu", "constexpr int c = 1;\n");
  Random random = random_for(1, 1, 1);
  EXPECT_EQ(mutate(parent, fake::dialect(), {}, random).id, parent.id);
}

/// Offers "done" once a constant has a value, and asks for rewrites of others before.
class Late : public Mutator {
public:
  Late(std::string_view name, std::string when, std::vector<Gene> preparation)
      : about_{name, "is late", "a = 1", "a = 2"}, when_(std::move(when)),
        preparation_(std::move(preparation)) {}

  const About& about() const override { return about_; }
  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    const bool ready = kernel.source().find(when_) != std::string::npos;
    return ready ? std::vector<Rewrite>{{"done", {{0, 0, "constexpr int done = 1;\n"}}}}
                 : std::vector<Rewrite>{};
  }
  std::vector<Gene> preparation(const Kernel& /*kernel*/) const override { return preparation_; }

private:
  About about_;
  std::string when_;
  std::vector<Gene> preparation_;
};

TEST(Mutate, PreparesWhatDoesNotApplyYet) {
  const Genome parent = seed_genome("ab.cu", fake::source(1, 1));
  const Late late("late", "int a = 3;", {{"more_a", "a 2"}, {"less_a", "a 9"}, {"more_a", "a 3"}});
  const Late later("later", "int done = 1;", {{"late", "done"}});
  Dialect dialect = fake::dialect();
  dialect.mutators.insert(dialect.mutators.end(), {&late, &later});
  EXPECT_THAT(prepared(parent, late, dialect).trail,
              ElementsAre(Gene{"more_a", "a 2"}, Gene{"more_a", "a 3"}));
  EXPECT_THAT(prepared(parent, later, dialect).trail,
              ElementsAre(Gene{"more_a", "a 2"}, Gene{"more_a", "a 3"}, Gene{"late", "done"}));
  std::map<std::string, std::size_t> genes;
  for (int slot = 0; slot < 50; ++slot) {
    Random random = random_for(1, 1, slot);
    const Genome child = mutate(parent, dialect, {}, random);
    EXPECT_EQ(child, std::get<Genome>(replay(parent, child.trail, dialect)));
    genes[child.trail.back().mutator] = child.trail.size();
  }
  EXPECT_EQ(genes["late"], 3U);
  EXPECT_EQ(genes["later"], 4U);
  EXPECT_EQ(genes["more_a"], 1U);
}

TEST(Mutate, LeavesAPreparationThatIsOfNoUse) {
  const Genome parent = seed_genome("ab.cu", fake::source(1, 1));
  const Late never("never", "int a = 9;", {{"more_a", "a 2"}});
  Random random = random_for(1, 1, 1);
  EXPECT_EQ(mutate(parent, {{&never}, fake::dialect().target}, {}, random).id, parent.id);
}

std::vector<std::size_t> lengths_of_a_walk(const Dialect& dialect, int steps, std::size_t last) {
  std::vector<std::size_t> lengths;
  Random random = random_for(1, 1, 1);
  random_walk(seed_genome("ab.cu", fake::source(0, 1)), steps, dialect, random,
              [&](const Genome& genome) {
                lengths.push_back(genome.trail.size());
                return genome.trail.size() < last;
              });
  return lengths;
}

TEST(RandomWalk, ShowsEveryStepUntilItHasEnough) {
  EXPECT_THAT(lengths_of_a_walk(fake::dialect(), 3, 9), ElementsAre(1, 2, 3));
  EXPECT_THAT(lengths_of_a_walk(fake::dialect(), 3, 2), ElementsAre(1, 2));
}

TEST(RandomWalk, EndsWhereNothingApplies) {
  const fake::Add to_nine("to_nine", "a", 4);
  EXPECT_THAT(lengths_of_a_walk({{&to_nine}, fake::dialect().target}, 9, 9), ElementsAre(1, 2));
}

Genome replayed(const Genome& seed, const std::vector<Gene>& trail) {
  return std::get<Genome>(replay(seed, trail, fake::dialect()));
}

TEST(Crossover, SplicesAfterTheCommonPrefixAndCountsWhatNoLongerApplies) {
  const Genome seed = seed_genome("ab.cu", fake::source(1, 1));
  const Gene common{"more_a", "a 2"};
  const Genome a = replayed(seed, {common, {"more_a", "a 3"}, {"more_a", "a 4"}});
  const Genome b = replayed(seed, {common, {"less_a", "a 1"}, {"more_b", "b 2"}});
  std::set<std::string> sources;
  std::size_t dropped = 0;
  for (int slot = 0; slot < 15; ++slot) {
    Random random = random_for(1, 1, slot);
    const Proposal child = crossover(a, b, {seed}, fake::dialect(), random);
    ASSERT_EQ(child.genome.trail.front(), common);
    EXPECT_EQ(child.genome, replayed(seed, child.genome.trail));
    EXPECT_THAT(child.parents, ElementsAre(a.id, b.id));
    sources.insert(child.genome.source);
    dropped += child.dropped.size();
    for (const Gene& gene : child.dropped) {
      EXPECT_EQ(gene.mutator, "less_a"); // "a 1" cannot follow "a 3"
    }
  }
  EXPECT_TRUE(sources.contains(fake::source(4, 2))); // all of a, the end of b
  EXPECT_GT(dropped, 0U);
}

// Inside a trail of "a 2", "a 3", "b 2": what cannot follow a change is dropped, and said.
TEST(Changes, InsideATrailLeaveTheRest) {
  const Genome seed = seed_genome("ab.cu", fake::source(1, 1));
  const Genome parent = replayed(seed, {{"more_a", "a 2"}, {"more_a", "a 3"}, {"more_b", "b 2"}});
  std::set<std::string> inserted;
  std::set<std::string> removed;
  for (int slot = 0; slot < 30; ++slot) {
    Random random = random_for(1, 1, slot);
    for (const Proposal& child : {insert(parent, {seed}, fake::dialect(), {}, random),
                                  replace(parent, {seed}, fake::dialect(), random),
                                  remove(parent, {seed}, fake::dialect(), random)}) {
      EXPECT_EQ(child.genome, replayed(seed, child.genome.trail));
      EXPECT_THAT(child.parents, ElementsAre(parent.id));
    }
    const Proposal longer = insert(parent, {seed}, fake::dialect(), {}, random);
    EXPECT_FALSE(longer.mutator.empty());
    inserted.insert(longer.genome.source);
    const Proposal shorter = remove(parent, {seed}, fake::dialect(), random);
    EXPECT_TRUE(shorter.mutator.empty());
    removed.insert(shorter.genome.source);
  }
  EXPECT_TRUE(inserted.contains(fake::source(0, 2))); // neither "a 2" nor "a 3" can follow 0
  EXPECT_TRUE(removed.contains(fake::source(3, 1)));
  EXPECT_TRUE(removed.contains(fake::source(1, 2))); // "a 3" cannot follow 1
}

TEST(Breed, IsAFunctionOfTheSlotAndAvoidsWhatIsKnown) {
  const Genome seed = seed_genome("ab.cu", fake::source(1, 1));
  Individual member;
  member.genome = seed;
  Nursery nursery{{member}, {seed}, {seed.id}, {}};
  const Proposal first = breed(nursery, fake::dialect(), random_for(1, 1, 1));
  EXPECT_EQ(first.genome, breed(nursery, fake::dialect(), random_for(1, 1, 1)).genome);
  EXPECT_THAT(first.parents, ElementsAre(seed.id));
  nursery.seen.insert(first.genome.id);
  int again = 0; // of several attempts at something else
  for (int slot = 0; slot < 20; ++slot) {
    again += breed(nursery, fake::dialect(), random_for(1, 1, slot)).genome == first.genome ? 1 : 0;
  }
  EXPECT_LT(again, 3);
}

class Broken : public fake::Add {
public:
  Broken() : Add("broken", "a", 1) {}
  std::vector<Rewrite> propose(const Kernel&) const override {
    return {{"outside", {{1000, 1, ""}}}};
  }
};

TEST(Breed, TurnsAMutatorsBugIntoAFault) {
  const Genome seed = seed_genome("ab.cu", fake::source(1, 1));
  Individual member;
  member.genome = seed;
  const Broken broken;
  const Proposal proposal =
      breed({{member}, {seed}, {}, {}}, {{&broken}, fake::dialect().target}, random_for(1, 1, 1));
  EXPECT_THAT(proposal.fault, testing::HasSubstr("outside the source"));
}

} // namespace
} // namespace evo
