// Trails that went wrong once, tests/trails/<name>_<seed>.trail: their last rewrite must be refused
// by now, or lead to a kernel that is right; the ones before it must apply. And how such trails are
// made shorter. `evo replay seeds/lora/<seed>.cu TRAIL` prints what a trail leads to.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "population/trail_file.hpp"
#include "tests/support/fake_search.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/trails.hpp"

namespace evo::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<fs::path> trail_files() {
  const fs::directory_iterator all(in_repository("tests/trails"));
  std::vector<fs::path> files(begin(all), end(all));
  std::ranges::sort(files);
  return files;
}

class EveryTrail : public testing::TestWithParam<fs::path> {};

TEST_P(EveryTrail, IsRefusedAtItsLastRewriteOrRight) {
  const Genome seed = seed_of(GetParam());
  const Dialect dialect{mutators(), default_target()};
  const std::vector<Gene> trail = load_trail(GetParam());
  const auto [genome, dropped] = follow(seed, trail, dialect);
  if (!dropped.empty()) {
    EXPECT_THAT(dropped, ElementsAre(trail.back()));
    return;
  }
  EXPECT_EQ(source_fault(genome, dialect.target), "");
  EXPECT_EQ(
      value_fault(seed, genome, sizes_around_the_tile(genome, dialect.target), dialect.target), "");
}

INSTANTIATE_TEST_SUITE_P(Lora, EveryTrail, testing::ValuesIn(trail_files()),
                         [](const auto& test) { return test.param.stem().string(); });

Genome after(const std::vector<std::string>& labels, const Genome& seed, const Dialect& dialect) {
  std::vector<Gene> trail;
  for (const std::string& label : labels) {
    trail.push_back({label.front() == 'a' ? "more_a" : "more_b", label});
  }
  return std::get<Genome>(replay(seed, trail, dialect));
}

const Genome seed = seed_genome("ab.cu", fake::source(0, 0));

TEST(Shrunk, LeavesWhatTheFaultNeeds) {
  const Genome long_one = after({"b 1", "a 1", "b 2", "a 2", "b 3", "a 3"}, seed, fake::dialect());
  const Genome shortest = shrunk(seed, long_one, fake::dialect(), [](const Genome& genome) {
    return fake::value(genome.source, "a") >= 2 ? "a is large" : "";
  });
  EXPECT_THAT(shortest.trail, ElementsAre(Gene{"more_a", "a 1"}, Gene{"more_a", "a 2"}));
}

TEST(Shrunk, LeavesNothingOfAFaultOfTheSeed) {
  const Genome long_one = after({"a 1", "b 1", "a 2"}, seed, fake::dialect());
  const auto always = [](const Genome&) { return "always"; };
  EXPECT_THAT(shrunk(seed, long_one, fake::dialect(), always).trail, IsEmpty());
}

TEST(Checks, TellWhatIsWrong) {
  const Target& target = default_target();
  Genome genome = seed_genome("ab.cu", fake::source(0, 0));
  EXPECT_EQ(source_fault(genome, target), "");
  genome.source += "\n\n";
  EXPECT_EQ(source_fault(genome, target), "its canonical form is another");
  EXPECT_THAT(source_fault(seed_genome("no.cu", "int"), target),
              testing::HasSubstr("does not parse"));
  Genome other = after({"a 1"}, seed, fake::dialect());
  EXPECT_EQ(replay_fault(seed, other, fake::dialect().mutators, target), "");
  other.id = "another";
  EXPECT_EQ(replay_fault(seed, other, fake::dialect().mutators, target),
            "replaying its trail gives another kernel");
  other.trail.front().label = "a 7";
  EXPECT_EQ(replay_fault(seed, other, fake::dialect().mutators, target),
            "its rewrite 1 is not proposed again");
}

} // namespace
} // namespace evo::test
