#include "population/genome.hpp"

#include <gtest/gtest.h>

#include "tests/support/fake_search.hpp"

namespace evo {
namespace {

const Genome seed = seed_genome("ab.cu", "constexpr int a=1;\nconstexpr  int b = 1;\n");

TEST(Genome, OfASeedIsCanonicalAndNamedByItsContent) {
  EXPECT_EQ(seed.source, fake::source(1, 1));
  EXPECT_EQ(seed.id, digest(seed.source));
  EXPECT_EQ(seed_genome("other.cu", seed.source).id, seed.id);
  EXPECT_TRUE(seed.trail.empty());
}

TEST(Genome, ReplaysByteForByte) {
  const std::vector<Gene> trail{{"more_a", "a 2"}, {"more_b", "b 2"}, {"more_a", "a 3"}};
  const auto result = replay(seed, trail, fake::dialect());
  ASSERT_TRUE(std::holds_alternative<Genome>(result));
  const Genome& genome = std::get<Genome>(result);
  EXPECT_EQ(genome.source, fake::source(3, 2));
  EXPECT_EQ(genome.id, digest(genome.source));
  EXPECT_EQ(genome.trail, trail);
  EXPECT_EQ(genome.seed, "ab.cu");
}

TEST(Genome, KeepsTheOrderOfRoundingWhileItsRewritesDo) {
  class Reorders : public fake::Add {
  public:
    Reorders() : Add("reorders", "a", 1) {}
    const About& about() const override {
      static const About about{
          .name = "reorders", .summary = "", .before = "", .after = "", .keeps_order = false};
      return about;
    }
  } reorders;
  Dialect dialect = fake::dialect();
  dialect.mutators.push_back(&reorders);
  const auto keeps = [&](const std::vector<Gene>& trail) {
    return std::get<Genome>(replay(seed, trail, dialect)).keeps_order;
  };
  EXPECT_TRUE(keeps({}));
  EXPECT_TRUE(keeps({{"more_a", "a 2"}}));
  EXPECT_FALSE(keeps({{"reorders", "a 2"}, {"more_b", "b 2"}}));
}

TEST(Genome, ReplaySaysWhichGeneDoesNotApply) {
  for (const Gene& wrong : {Gene{"more_a", "a 7"}, Gene{"no_such_mutator", "a 2"}}) {
    const auto result = replay(seed, {{"more_b", "b 2"}, wrong}, fake::dialect());
    ASSERT_TRUE(std::holds_alternative<ReplayFailure>(result));
    EXPECT_EQ(std::get<ReplayFailure>(result).gene, 1U);
  }
}

TEST(Genome, OfASourceThatDoesNotParseHasNoChildren) {
  const Genome broken = seed_genome("broken.cu", fake::source(1, 1) + "nonsense\n");
  EXPECT_FALSE(append(broken, {"more_a", "a 2"}, fake::dialect()));
}

TEST(Dialect, AsksAMutatorOncePerSource) {
  class Counted : public fake::Add {
  public:
    Counted() : Add("counted", "a", 1) {}
    std::vector<Rewrite> propose(const Kernel& kernel) const override {
      ++asked;
      return Add::propose(kernel);
    }
    mutable int asked = 0;
  } mutator;
  const Dialect dialect{{&mutator}, fake::dialect().target};
  const Genome renamed = seed_genome("other.cu", seed.source);
  EXPECT_EQ(*dialect.proposals(seed, mutator), *dialect.proposals(renamed, mutator));
  EXPECT_EQ(mutator.asked, 1);
  dialect.proposals(seed_genome("ab.cu", fake::source(2, 1)), mutator);
  EXPECT_EQ(mutator.asked, 2);
}

TEST(Dialect, ThrowsAMutatorsBugEveryTime) {
  class Broken : public fake::Add {
  public:
    Broken() : Add("broken", "a", 1) {}
    std::vector<Rewrite> propose(const Kernel&) const override { throw std::logic_error("bug"); }
  } mutator;
  const Dialect dialect{{&mutator}, fake::dialect().target};
  EXPECT_THROW(dialect.proposals(seed, mutator), std::logic_error);
  EXPECT_THROW(dialect.proposals(seed, mutator), std::logic_error);
}

TEST(Gene, ReadsWhatItPrints) {
  const Gene gene{"unroll_loop", "gemm/k: unroll 4"};
  EXPECT_EQ(to_string(gene), "unroll_loop: gemm/k: unroll 4");
  EXPECT_EQ(gene_from(to_string(gene)), gene);
  for (const char* wrong : {"", "unroll_loop", "unroll_loop:", ": label", "unroll_loop: "}) {
    EXPECT_FALSE(gene_from(wrong)) << wrong;
  }
}

} // namespace
} // namespace evo
