#include "fitness/hazards.hpp"

#include <thread>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fitness/artifact_cache.hpp"
#include "mutators/rewrite.hpp"
#include "population/hazard_guard.hpp"
#include "tests/support/temporary_folder.hpp"

namespace evo {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Fitness failure(Verdict verdict, const std::string& detail) {
  Fitness fitness;
  fitness.verdict = verdict;
  fitness.detail = detail;
  return fitness;
}

class HazardsTest : public testing::Test {
protected:
  static Attempt attempt(const std::string& key) {
    return {key, "// the source of " + key, "nvcc -O3 kernel.cu", 3000ms};
  }

  void run(const std::string& key, const Fitness& fitness) {
    Hazards hazards(folder());
    hazards.begin(attempt(key));
    hazards.end(fitness);
  }

  /// A process that is killed while it judges.
  void die_in(const std::string& key) {
    const pid_t child = fork();
    if (child == 0) {
      Hazards hazards(folder());
      hazards.begin(attempt(key));
      raise(SIGKILL);
    }
    waitpid(child, nullptr, 0);
  }

  std::optional<Hazard> known(const std::string& key, std::chrono::milliseconds deadline = 3000ms) {
    return Hazards(folder()).find(key, deadline);
  }

  std::filesystem::path folder() const { return temporary_.path() / "hazards"; }

  TemporaryFolder temporary_;
};

TEST_F(HazardsTest, ACrashIsRememberedWithAllItTakesToRepeatIt) {
  run("a", failure(Verdict::Crash, "signal 11"));
  ASSERT_TRUE(known("a"));
  EXPECT_EQ(known("a")->verdict, Verdict::Crash);
  EXPECT_EQ(known("a")->detail, "signal 11");
  EXPECT_EQ(read_file(folder() / "a.cu"), "// the source of a");
  EXPECT_THAT(read_file(folder() / "a.json"), HasSubstr("nvcc -O3 kernel.cu"));
}

TEST_F(HazardsTest, WhatComesToAnEndIsNone) {
  run("right", failure(Verdict::Ok, ""));
  run("wrong", failure(Verdict::WrongAnswer, "by 3"));
  EXPECT_FALSE(known("right"));
  EXPECT_FALSE(known("wrong"));
}

TEST_F(HazardsTest, AHangCountsForSimilarDeadlinesOnly) {
  run("slow", failure(Verdict::Hang, "no answer within 3 s"));
  EXPECT_TRUE(known("slow", 1000ms));
  EXPECT_TRUE(known("slow", 5000ms));
  EXPECT_FALSE(known("slow", 60000ms)) << "perhaps it is only slow";
}

TEST_F(HazardsTest, WhatWasRunningWhenEvoWasKilledIsKnownAtTheNextStart) {
  die_in("b");
  Hazards hazards(folder());
  ASSERT_TRUE(hazards.find("b", 3000ms));
  EXPECT_EQ(hazards.find("b", 3000ms)->verdict, Verdict::Crash);
  EXPECT_THAT(hazards.notes(), ElementsAre(HasSubstr("b.cu was being judged when evo or the")));
  EXPECT_THAT(Hazards(folder()).notes(), IsEmpty()) << "said twice";
  EXPECT_TRUE(known("b")) << "forgotten at the start after the next";
}

TEST_F(HazardsTest, AnotherRunsTrialIsNoLeftover) {
  Hazards other(folder());
  other.begin(attempt("c"));
  EXPECT_FALSE(known("c"));
  other.forget();
}

TEST_F(HazardsTest, AnUnknownEndIsForgotten) {
  {
    Hazards hazards(folder());
    hazards.begin(attempt("d"));
    hazards.forget();
  }
  EXPECT_FALSE(known("d"));
}

TEST_F(HazardsTest, DamagedFilesAreIgnoredWithANote) {
  run("a", failure(Verdict::Crash, ""));
  write_file(folder() / "bad.json", R"({"verdict": "cra)");
  write_file(folder() / "odd.json", R"({"verdict": "ok", "detail": "", "deadline_ms": 1})");
  write_file(folder() / "XXX.running", R"({"key": )");
  const Hazards hazards(folder());
  EXPECT_EQ(hazards.notes().size(), 3u);
  EXPECT_THAT(hazards.notes(), testing::Each(HasSubstr("is damaged and not used")));
  EXPECT_TRUE(hazards.find("a", 1ms));
  EXPECT_FALSE(hazards.find("bad", 1ms));
  EXPECT_FALSE(hazards.find("odd", 1ms));
}

TEST_F(HazardsTest, TheOldestGo) {
  Hazards hazards(folder(), 2);
  for (const std::string key : {"a", "b", "c"}) {
    hazards.begin(attempt(key));
    hazards.end(failure(Verdict::Crash, ""));
    std::this_thread::sleep_for(20ms); // the file system's clock ticks slowly
  }
  EXPECT_FALSE(known("a"));
  EXPECT_FALSE(std::filesystem::exists(folder() / "a.cu"));
  EXPECT_TRUE(known("b"));
  EXPECT_TRUE(known("c"));
}

/// Hangs whatever it judges, and counts.
class Hanging : public FitnessEvaluator {
public:
  explicit Hanging(int& judgements) : judgements_(judgements) {}

  std::variant<Built, BuildFailure> build(const Genome&, std::stop_token, Gates) const override {
    return Built{.library = {}, .binary_digest = "binary", .kernels = {}, .probe_sizes = {}};
  }
  Judgement judge(const Genome&, const Built&, const Incumbent*, std::stop_token) override {
    ++judgements_;
    return {.fitness = failure(Verdict::Hang, "no answer within 60 s"), .incumbent = {}};
  }
  VerifyResponse verify(const Genome&, const Built&, bool, std::stop_token) override { return {}; }

private:
  int& judgements_;
};

class HazardGuardTest : public HazardsTest {
protected:
  Fitness judge(const std::string& machine, const Genome& genome, std::stop_token stop = {}) {
    HazardGuard guard(std::make_unique<Hanging>(judgements_), std::make_unique<Hazards>(folder()),
                      machine, "nvcc");
    const Built built = std::get<Built>(guard.build(genome, stop, Gates::All));
    return guard.judge(genome, built, nullptr, stop).fitness;
  }

  const Genome child_{
      .id = "child", .seed = "naive.cu", .trail = {{"unroll_loop", "k 2"}}, .source = "// child"};
  int judgements_ = 0;
};

TEST_F(HazardGuardTest, AHangIsPaidOnce) {
  EXPECT_EQ(judge("H200, driver 13.0", child_).detail, "no answer within 60 s");
  const Fitness again = judge("H200, driver 13.0", child_);
  EXPECT_EQ(judgements_, 1);
  EXPECT_EQ(again.verdict, Verdict::Hang);
  EXPECT_EQ(again.detail, "known from an earlier run, and not run again: no answer within 60 s");
}

TEST_F(HazardGuardTest, AnotherDriverOrCardIsAskedAgain) {
  judge("H200, driver 13.0", child_);
  judge("H200, driver 13.1", child_);
  judge("RTX 3090, driver 13.0", child_);
  EXPECT_EQ(judgements_, 3);
}

TEST_F(HazardGuardTest, WhatTheUserNamesIsAlwaysRun) {
  const Genome seed{.id = "seed", .seed = "naive.cu", .trail = {}, .source = "// seed"};
  judge("H200", seed);
  judge("H200", seed);
  EXPECT_EQ(judgements_, 2);
}

TEST_F(HazardGuardTest, AStopIsNobodysFault) {
  std::stop_source stop;
  stop.request_stop();
  judge("H200", child_, stop.get_token());
  judge("H200", child_);
  EXPECT_EQ(judgements_, 2);
}

} // namespace
} // namespace evo
