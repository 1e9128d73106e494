// Runs that are killed and go on.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fitness/problem.hpp"
#include "fitness/process.hpp"
#include "population/context.hpp"
#include "population/files.hpp"
#include "population/journal.hpp"
#include "population/recorded_evaluator.hpp"
#include "population/run_lock.hpp"
#include "population/run_log.hpp"
#include "population/snapshot.hpp"
#include "tests/support/fake_search.hpp"
#include "tests/support/nobody.hpp"
#include "tests/support/temporary_folder.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

std::string sentence(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const Genome seed = seed_genome("ab.cu", fake::source(1, 1));

class Killed : public testing::Test {
protected:
  static constexpr const char* delay_us = "2000";

  ProcessResult run(const fs::path& population) {
    return run_process({EVO_RESUMABLE_RUN, population.string(), delay_us}, {});
  }

  /// Starts a run, or goes on with it, and kills it after so long.
  static void run_and_kill(const fs::path& population, std::chrono::microseconds after) {
    const pid_t child = fork();
    if (child == 0) {
      execl(EVO_RESUMABLE_RUN, EVO_RESUMABLE_RUN, population.c_str(), delay_us, nullptr);
      _exit(127);
    }
    std::this_thread::sleep_for(after);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }

  std::string log(const fs::path& population) const {
    return read_text(population / "runs" / "latest" / "log.jsonl");
  }

  /// Everything that is left of runs that were killed `times` is as without.
  void expect_the_same(int points, int times) {
    const fs::path whole = folder_.path() / "whole";
    const auto start = Clock::now();
    ASSERT_EQ(run(whole).exit_code, 0);
    const auto duration =
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
    std::mt19937 random(11);
    int killed_midway = 0;
    for (int point = 0; point < points; ++point) {
      const fs::path population = folder_.path() / std::to_string(point);
      for (int i = 0; i < times; ++i) {
        run_and_kill(population, duration / times * (random() % 1000) / 1000);
      }
      killed_midway += fs::exists(population / "archive.txt") ? 0 : 1;
      const ProcessResult resumed = run(population);
      ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
      ASSERT_EQ(read_text(population / "archive.txt"), read_text(whole / "archive.txt")) << point;
      ASSERT_EQ(log(population), log(whole)) << point;
      ASSERT_EQ(read_text(population / "out.cu"), read_text(whole / "out.cu")) << point;
      fs::remove_all(population);
    }
    EXPECT_GT(killed_midway, 0);
  }

  TemporaryFolder folder_;
};

TEST_F(Killed, GoOnAsIfTheyHadNotBeen) {
  expect_the_same(8, 1);
}

TEST_F(Killed, GoOnAgainAndAgain) {
  expect_the_same(4, 3);
}

TEST_F(Killed, LongGoOnFromFiftyPoints) {
  expect_the_same(50, 1);
}

TEST_F(Killed, LoseNothingOnAFullDisk) {
  const fs::path whole = folder_.path() / "whole";
  ASSERT_EQ(run(whole).exit_code, 0);
  const fs::path population = folder_.path() / "full";
  const ProcessResult full = run_process({"bash", "-c", "trap '' XFSZ; ulimit -f 12; exec \"$@\"",
                                          "full", EVO_RESUMABLE_RUN, population.string(), delay_us},
                                         {});
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_THAT(full.output, HasSubstr("cannot write"));
  EXPECT_THAT(full.output, HasSubstr("File too large"));
  ASSERT_EQ(run(population).exit_code, 0);
  EXPECT_EQ(read_text(population / "archive.txt"), read_text(whole / "archive.txt"));
  EXPECT_EQ(log(population), log(whole));
}

TEST_F(Killed, BreedAgainWhatIsDamaged) {
  const fs::path whole = folder_.path() / "whole";
  ASSERT_EQ(run(whole).exit_code, 0);
  const std::string archive = read_text(whole / "archive.txt");
  const std::string before = log(whole);
  for (const char* damage : {"gen-0004/summary.json", "gen-0002/summary.json"}) {
    const fs::path file = whole / "runs" / "latest" / damage;
    write_text(file, read_text(file).substr(0, 300));
    ASSERT_EQ(run(whole).exit_code, 0);
    EXPECT_EQ(read_text(whole / "archive.txt"), archive);
    EXPECT_EQ(log(whole), before);
  }
}

TEST(RunLockTest, TwoEnginesAtOneRunAreOneTooMany) {
  const TemporaryFolder folder;
  const Snapshot first(folder.path(), 7);
  EXPECT_TRUE(RunLock::held(first.folder()));
  EXPECT_THAT(sentence([&] { const Snapshot second(first.folder()); }),
              HasSubstr("another evo is at the run " + first.folder().string() + ", process " +
                        std::to_string(getpid()) + "; end that one first"));
}

TEST(RunLockTest, EndsWithItsHolder) {
  const TemporaryFolder folder;
  const fs::path run = Snapshot(folder.path(), 7).folder();
  EXPECT_FALSE(RunLock::held(run));
  EXPECT_NO_THROW(const Snapshot again(run));
}

TEST(RunLockTest, AReadOnlyRunIsOneSentence) {
  const TemporaryFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  const Nobody nobody;
  EXPECT_THAT(sentence([&] { const Snapshot snapshot(folder.path()); }),
              HasSubstr("Permission denied; a run is resumed where it can be written"));
  EXPECT_THAT(sentence([&] { const Snapshot snapshot(folder.path(), 7); }),
              HasSubstr("choose another --population-dir"));
}

class JournalTest : public testing::Test {
protected:
  static Individual individual(int a) {
    Individual result;
    result.genome = seed_genome("ab.cu", fake::source(a, 1));
    result.built = true;
    result.fitness = {
        .verdict = Verdict::Ok, .detail = {}, .sizes = {}, .speedup = static_cast<double>(a)};
    return result;
  }
  static Setting setting(const std::string& card) {
    Setting result;
    result.context.subject = {{"card", card}};
    result.backend.card = card;
    result.backend.target = *Target::find("sm_86");
    return result;
  }

  TemporaryFolder folder_;
  fs::path file_ = folder_.path() / "journal.jsonl";
};

TEST_F(JournalTest, RemembersUnderWhichConditionsAVerdictWasGiven) {
  Journal(file_, setting("A100")).add(individual(3));
  Journal(file_, setting("H200")).add(individual(5));
  const Recorded recorded = read_journal(file_);
  ASSERT_EQ(recorded.settings.size(), 2U);
  const auto& entry = recorded.verdicts.at(individual(3).genome.id);
  EXPECT_EQ(recorded.settings[entry.setting].backend.card, "A100");
  EXPECT_EQ(entry.individual.fitness.speedup, 3);
  EXPECT_EQ(recorded.settings.back().context.subject.at("card"), "H200");
}

TEST_F(JournalTest, HoldsNeitherFaultsNorWhatIsSaidAlready) {
  Journal journal(file_, setting("H200"));
  Individual copy = individual(3);
  copy.duplicate_of = copy.genome.id;
  Individual fault = individual(5);
  fault.fitness = failed(Verdict::Fault, "a bug");
  journal.add(copy);
  journal.add(fault);
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(JournalTest, ACutLineIsLeftOutAndSaid) {
  Journal(file_, setting("H200")).add(individual(3));
  append_text(file_, R"({"id": "cut in the midd)");
  EXPECT_EQ(read_journal(file_).damaged_lines, 1U);
  Journal(file_, setting("H200")).add(individual(5));
  const Recorded recorded = read_journal(file_);
  EXPECT_EQ(recorded.damaged_lines, 0U);
  EXPECT_EQ(recorded.verdicts.size(), 2U);
}

TEST_F(JournalTest, AFullDiskIsOneSentence) {
  if (fs::exists("/dev/full")) {
    EXPECT_EQ(sentence([] { Journal("/dev/full", setting("H200")).add(individual(3)); }),
              "cannot write /dev/full: No space left on device");
  }
}

TEST_F(JournalTest, GivesItsVerdictsAgain) {
  Journal journal(file_, setting("H200"));
  Individual unbuilt = individual(4);
  unbuilt.built = false;
  unbuilt.fitness = failed(Verdict::NoBuild, "a is 4");
  journal.add(individual(3));
  journal.add(unbuilt);
  RecordedEvaluator evaluator(read_journal(file_));
  const auto built = evaluator.build(individual(3).genome, {}, Gates::All);
  EXPECT_EQ(
      evaluator.judge(individual(3).genome, std::get<Built>(built), nullptr, {}).fitness.speedup,
      3);
  EXPECT_EQ(std::get<BuildFailure>(evaluator.build(unbuilt.genome, {}, Gates::All)).detail,
            "a is 4");
  EXPECT_EQ(std::get<BuildFailure>(evaluator.build(individual(9).genome, {}, Gates::All)).verdict,
            Verdict::Unrecorded);
}

/// Keeps what it is told.
class Witness : public Observer {
public:
  std::vector<Generation> generations;
  std::vector<Individual> again;

  void better(const Individual&) override {}
  void settled(const Individual&) override {}
  void generation(const Generation& each) override { generations.push_back(each); }
  void judged_again(int, const std::vector<Individual>& individuals) override {
    again = individuals;
  }

  std::vector<Past> past(std::size_t count) const {
    std::vector<Past> result;
    for (std::size_t i = 0; i < count; ++i) {
      result.push_back({generations[i].children, {}});
    }
    return result;
  }
  std::string log() const {
    std::string text;
    for (const Generation& each : generations) {
      text += json_lines(events(each));
    }
    return text;
  }
};

Witness search_in(FitnessEvaluator& world, const Beginning& beginning) {
  Witness witness;
  Search({.generations = 4, .population = 8, .seed = 7, .jobs = 2}, {seed}, fake::dialect(), world,
         witness, {})
      .run(beginning);
  return witness;
}

TEST(Resumed, FromEveryGenerationTheSearchIsTheSame) {
  fake::World world;
  const Witness whole = search_in(world, {});
  for (std::size_t count = 1; count <= 5; ++count) {
    fake::World again;
    const Witness resumed = search_in(again, {.past = whole.past(count)});
    EXPECT_EQ(resumed.log(), whole.log());
    EXPECT_EQ(resumed.again.size(), 1U) << "the best";
    EXPECT_TRUE(resumed.generations[count - 1].past);
    EXPECT_EQ(
        again.judgements, world.judgements + 1 - [&] {
          int past = 0;
          for (std::size_t i = 0; i < count; ++i) {
            for (const Individual& each : whole.generations[i].children) {
              past += each.duplicate_of.empty() && each.stage == Stage::Judge ? 1 : 0;
            }
          }
          return past;
        }());
  }
}

/// Another card: what was fast is slow.
class Elsewhere : public fake::World {
public:
  Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                  std::stop_token stop) override {
    Judgement judgement = World::judge(genome, built, incumbent, stop);
    if (judgement.fitness.ok()) {
      judgement.fitness.speedup = 100 - judgement.fitness.speedup;
    }
    return judgement;
  }
};

TEST(Resumed, ElsewhereEverythingThatBreedsIsTimedAgain) {
  fake::World world;
  const Witness whole = search_in(world, {});
  Elsewhere other;
  const Witness resumed = search_in(other, {.past = whole.past(3), .elsewhere = true});
  EXPECT_GT(resumed.again.size(), 1U);
  for (std::size_t number = 3; number < resumed.generations.size(); ++number) {
    for (const auto& island : resumed.generations[number].survivors) {
      for (const Individual& survivor : island) {
        EXPECT_GT(survivor.fitness.speedup, 50);
      }
    }
  }
  // And a run that goes on once more remembers it.
  std::vector<Past> past = resumed.past(4);
  past[2].judged_again = resumed.again;
  Elsewhere same;
  const Witness twice = search_in(same, {.past = past});
  EXPECT_EQ(twice.log(), resumed.log());
}

TEST(Resumed, WhereTheBestFailsTheOthersAreJudgedToo) {
  fake::World world;
  const Witness whole = search_in(world, {});
  class Strict : public fake::World {
  public:
    std::string refused;
    Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                    std::stop_token stop) override {
      if (genome.id == refused) {
        return {.fitness = failed(Verdict::Race, "here"), .incumbent = {}};
      }
      return World::judge(genome, built, incumbent, stop);
    }
  } strict;
  const std::vector<Past> past = whole.past(4);
  for (const Past& generation : past) {
    for (const Individual& each : generation.children) {
      strict.refused = each.elite ? each.genome.id : strict.refused;
    }
  }
  const Witness resumed = search_in(strict, {.past = past});
  ASSERT_GT(resumed.again.size(), 1U);
  EXPECT_EQ(resumed.again.front().verdict(), Verdict::Race);
  for (const auto& island : resumed.generations.back().survivors) {
    for (const Individual& survivor : island) {
      EXPECT_NE(survivor.genome.id, strict.refused);
    }
  }
}

TEST(Differences, AreNamed) {
  Context before{.subject = {{"card", "A100"}}, .terms = {{"driver", "12.4"}, {"toolkit", "x"}}};
  Context now = before;
  EXPECT_EQ(differences(now, before), "");
  now.subject["card"] = "H200";
  now.terms["driver"] = "13.0";
  EXPECT_EQ(differences(now, before), "card H200 instead of A100, driver 13.0 instead of 12.4");
}

} // namespace
} // namespace evo
