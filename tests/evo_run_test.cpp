// The built program from seeds to export on the model backend, with a second, tiny operator.
#include <algorithm>
#include <chrono>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fitness/builder.hpp"
#include "fitness/problem.hpp"
#include "fitness/process.hpp"
#include "population/files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string relu = EVO_SOURCE_DIR "/tests/operators/relu";

class EvoRun : public testing::Test {
protected:
  void SetUp() override {
    try {
      Builder::find_nvcc();
    } catch (const InputError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  ProcessResult evo(const Words& words, const Words& wrapper = {}) const {
    Words command = wrapper;
    command.insert(command.end(), {EVO_PROGRAM, "--problem", relu, "--backend", "model", "--pop",
                                   "4", "--generations", "2"});
    command.insert(command.end(), words.begin(), words.end());
    ProcessOptions options;
    options.directory = folder_.path();
    options.deadline = std::chrono::minutes(5);
    return run_process(command, options);
  }

  std::string log(const std::string& population) const {
    return read_text(folder_.path() / population / "runs" / "latest" / "log.jsonl");
  }

  /// Runs on the verdicts of verdicts.jsonl have the log of the run that they are from.
  void expect_repeats_of(const std::string& judged, int kills) {
    const auto start = std::chrono::steady_clock::now();
    for (const char* jobs : {"1", "2", "16"}) {
      const ProcessResult run =
          evo({"--fitness-from", "verdicts.jsonl", "--jobs", jobs, "--population-dir", jobs});
      ASSERT_EQ(run.exit_code, 0) << run.output;
      EXPECT_THAT(run.output, HasSubstr("Backend: verdicts recorded in verdicts.jsonl (model of"));
      EXPECT_EQ(log(jobs), log(judged));
    }
    const std::chrono::duration<double> seconds = (std::chrono::steady_clock::now() - start) / 3;
    std::mt19937 random(5);
    for (int i = 0; i < kills; ++i) {
      const std::string population = "killed" + std::to_string(i);
      const double after = 0.05 + seconds.count() * (random() % 1000) / 1000;
      evo({"--fitness-from", "verdicts.jsonl", "--population-dir", population},
          {"timeout", "-s", "KILL", std::to_string(after)});
      if (!fs::exists(folder_.path() / population / "runs" / "latest" / "run.json")) {
        continue; // nothing had begun
      }
      const ProcessResult run = evo({"--population-dir", population, "resume", "latest"});
      EXPECT_EQ(run.exit_code == 2, run.output.find("is complete") != std::string::npos)
          << run.output;
      EXPECT_EQ(log(population), log(judged));
    }
  }

  TemporaryFolder folder_;
};

TEST_F(EvoRun, LeavesAnExportSnapshotsAndTheSameLogForEveryNumberOfJobs) {
  const ProcessResult run = evo({"--jobs", "2"});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("estimated, not measured"));
  EXPECT_THAT(run.output, HasSubstr("2047: "));
  EXPECT_THAT(run.output, HasSubstr("generation 2/2"));
  EXPECT_THAT(read_text(folder_.path() / "optimized_relu.cu"), HasSubstr("PYBIND11_MODULE"));

  const fs::path latest = folder_.path() / "population" / "runs" / "latest";
  EXPECT_TRUE(fs::exists(latest / "gen-0002" / "summary.json"));
  EXPECT_FALSE(fs::exists(latest / "gen-0003"));
  const auto about = nlohmann::json::parse(read_text(latest / "run.json"));
  EXPECT_EQ(about.at("measured"), false);
  EXPECT_EQ(about.at("level"), "default");
  EXPECT_THAT(log("population"), HasSubstr("\"event\":\"verified\""));
  EXPECT_THAT(read_text(folder_.path() / "optimized_relu.cu"),
              HasSubstr("// Accuracy verified at level default, at the size"));

  ASSERT_EQ(evo({"--jobs", "1", "--population-dir", "other"}).exit_code, 0);
  EXPECT_EQ(log("other"), log("population"));
  ASSERT_EQ(evo({"--seed", "2"}).exit_code, 0);
  EXPECT_NE(log("other"), log("population"));
}

TEST_F(EvoRun, BeginsWithWhatEarlierRunsFoundUnlessItIsToBeFresh) {
  ASSERT_EQ(evo({"--generations", "1"}).exit_code, 0);
  const std::string first = log("population");
  EXPECT_THAT(first, testing::Not(HasSubstr("\"event\":\"known\"")));
  ProcessResult run = evo({"--generations", "1"});
  EXPECT_THAT(run.output, HasSubstr(" verdicts known, "));
  EXPECT_THAT(run.output, HasSubstr("Known from earlier runs, and not judged again: "));
  EXPECT_THAT(log("population"), HasSubstr("\"event\":\"known\""));
  run = evo({"--generations", "1", "--fresh"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(log("population"), first);

  write_text(folder_.path() / "no store", "words");
  run = evo({"--store", "no store"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, HasSubstr("evo: cannot open the store no store: it is damaged, or no"));
}

TEST_F(EvoRun, RepeatsRecordedVerdictsWithAnyNumberOfJobsAndFromAnyKill) {
  ASSERT_EQ(evo({"--population-dir", "judged"}).exit_code, 0);
  fs::copy(folder_.path() / "judged" / "runs" / "latest" / "journal.jsonl",
           folder_.path() / "verdicts.jsonl");
  expect_repeats_of("judged", 3);
}

TEST_F(EvoRun, LongRepeatsRecordedVerdictsFromFiftyKills) {
  ASSERT_EQ(evo({"--population-dir", "judged"}).exit_code, 0);
  fs::copy(folder_.path() / "judged" / "runs" / "latest" / "journal.jsonl",
           folder_.path() / "verdicts.jsonl");
  expect_repeats_of("judged", 50);
}

TEST_F(EvoRun, GoesOnWithARunOnTheJudgeThatWasKilled) {
  ASSERT_EQ(evo({"--population-dir", "whole"}).exit_code, 0);
  evo({"--population-dir", "killed"}, {"timeout", "-s", "KILL", "6"});
  const ProcessResult resumed = evo({"--population-dir", "killed", "resume", "latest"});
  if (resumed.exit_code == 2) { // it was quick
    EXPECT_THAT(resumed.output, HasSubstr("is complete, with 2 generations; ask for more of them "
                                          "with --generations"));
    return;
  }
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  // Who was being judged then is a hazard, as always when evo ends: not run again.
  const bool in_judgement =
      resumed.output.find("was being judged when evo or the machine ended") != std::string::npos;
  if (!in_judgement) {
    EXPECT_EQ(log("killed"), log("whole"));
  }
  EXPECT_EQ(evo({"--population-dir", "killed", "--generations", "3", "resume", "latest"}).exit_code,
            0);
  EXPECT_THAT(log("killed"), testing::StartsWith(log("whole").substr(0, 200)));
}

TEST_F(EvoRun, SaysWhyItCannotGoOn) {
  EXPECT_THAT(evo({"resume", "nonsense"}).output, HasSubstr("evo: there is no run nonsense in "));
  write_text(folder_.path() / "verdicts.jsonl", "");
  ProcessResult run = evo({"--fitness-from", "verdicts.jsonl"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, HasSubstr("verdicts.jsonl holds no verdicts; name the journal.jsonl"));
}

TEST_F(EvoRun, RefusesASeedThatComputesSomethingWrong) {
  std::string source = read_text(relu + "/naive.cu");
  const std::string right = "sum += ";
  ASSERT_NE(source.find(right), std::string::npos);
  source.replace(source.find(right), right.size(), "sum += 2 * ");
  write_text(folder_.path() / "wrong.cu", source);
  write_text(folder_.path() / "optimized_relu.cu", "what stood there");
  const ProcessResult run = evo({"--seeds", "wrong.cu"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, HasSubstr("seed wrong.cu does not pass (wrong answer: "));
  EXPECT_EQ(read_text(folder_.path() / "optimized_relu.cu"), "what stood there");
}

TEST_F(EvoRun, KeepsAnIncumbentThatPasses) {
  const std::string words = "// its own words\n" + read_text(relu + "/naive.cu");
  write_text(folder_.path() / "earlier.cu", words);
  const ProcessResult run = evo({"--generations", "0", "--incumbent", "earlier.cu"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(log("population"), HasSubstr("\"seed\":\"earlier.cu\""));
}

TEST_F(EvoRun, EndsCleanlyOnASignalAndOnItsBudget) {
  const Words many{"--generations", "1000", "--pop", "8"};
  ProcessResult run = evo(many, {"timeout", "--preserve-status", "-s", "TERM", "8"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("Stopped by SIGTERM"));
  EXPECT_THAT(read_text(folder_.path() / "optimized_relu.cu"), HasSubstr("PYBIND11_MODULE"));

  Words budget = many;
  budget.insert(budget.end(), {"--time-budget", "6"});
  run = evo(budget);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("Stopped by the time budget"));
}

TEST_F(EvoRun, ExportsAnIndividualOfAnEarlierRun) {
  ASSERT_EQ(evo({"--generations", "0"}).exit_code, 0);
  const fs::path latest = folder_.path() / "population" / "runs" / "latest";
  const auto summary = nlohmann::json::parse(read_text(latest / "gen-0000" / "summary.json"));
  const std::string id = summary.at("individuals").at(0).at("id");
  const ProcessResult run = evo({"--out", "again.cu", "export", "latest", id.substr(0, 8)});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(read_text(folder_.path() / "again.cu"),
            read_text(folder_.path() / "optimized_relu.cu"));
}

} // namespace
} // namespace evo
