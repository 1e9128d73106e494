#include "fitness/worker_client.hpp"

#include <cstdlib>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

namespace evo {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr WorkerDeadlines deadlines{.prepare = 5s, .judge = 10s};

JudgeRequest asking(const std::string& behaviour) {
  JudgeRequest request;
  request.library = behaviour;
  return request;
}

class WorkerClientTest : public testing::Test {
protected:
  Fitness judge(const std::string& behaviour) { return client_.judge(asking(behaviour)).fitness; }

  /// The worker is there again, and whole.
  void expect_recovery(int restarts) {
    EXPECT_EQ(judge("well").verdict, Verdict::Ok);
    EXPECT_EQ(client_.restarts(), restarts);
  }

  WorkerClient client_{EVO_FAKE_WORKER, {}, deadlines};
};

TEST_F(WorkerClientTest, JudgesInOneProcess) {
  EXPECT_EQ(client_.prepare().device_name, "fake");
  EXPECT_EQ(judge("well").verdict, Verdict::Ok);
  expect_recovery(0);
}

TEST_F(WorkerClientTest, ACrashNamesTheSignalAndTheLastWords) {
  const Fitness fitness = judge("crash");
  EXPECT_EQ(fitness.verdict, Verdict::Crash);
  EXPECT_EQ(fitness.detail,
            "the worker ended with signal 11 (Segmentation fault); it last printed: "
            "about to fall");
  expect_recovery(1);
}

TEST_F(WorkerClientTest, AHangIsKilledAtItsDeadline) {
  WorkerClient hasty(EVO_FAKE_WORKER, {}, {.prepare = 5s, .judge = 500ms});
  hasty.prepare();
  const auto start = Clock::now();
  const Fitness fitness = hasty.judge(asking("hang")).fitness;
  EXPECT_LT(Clock::now() - start, 500ms + 2s);
  EXPECT_EQ(fitness.verdict, Verdict::Hang);
  EXPECT_EQ(fitness.detail, "no answer within 0.5 s");
  EXPECT_EQ(hasty.judge(asking("well")).fitness.verdict, Verdict::Ok);
}

TEST_F(WorkerClientTest, AnExitIsACrashHoweverClean) {
  const Fitness fitness = judge("exit");
  EXPECT_EQ(fitness.verdict, Verdict::Crash);
  EXPECT_EQ(fitness.detail, "the worker ended with exit code 0");
  expect_recovery(1);
}

TEST_F(WorkerClientTest, WhatACandidatePrintsIsNoAnswer) {
  EXPECT_EQ(judge("flood").verdict, Verdict::Ok);
  expect_recovery(0);
}

TEST_F(WorkerClientTest, GarbageOnTheChannelEndsTheWorker) {
  const Fitness fitness = judge("garbage");
  EXPECT_EQ(fitness.verdict, Verdict::Crash);
  EXPECT_THAT(fitness.detail, HasSubstr("not an answer: {\"fitness\": \"great\"}"));
  expect_recovery(1);
}

TEST_F(WorkerClientTest, AWorkerThatLeavesIsReplacedWithoutPenalty) {
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(judge("launch error").verdict, Verdict::LaunchError);
    expect_recovery(i);
  }
}

TEST_F(WorkerClientTest, AWorkerThatIsGoneIsReplacedWithoutPenalty) {
  EXPECT_EQ(judge("silent exit").verdict, Verdict::LaunchError);
  std::this_thread::sleep_for(300ms);
  expect_recovery(1);
}

TEST_F(WorkerClientTest, StopEndsTheWait) {
  std::stop_source source;
  std::jthread later([&source] {
    std::this_thread::sleep_for(300ms);
    source.request_stop();
  });
  client_.prepare();
  const auto start = Clock::now();
  const Fitness fitness = client_.judge(asking("hang"), source.get_token()).fitness;
  EXPECT_LT(Clock::now() - start, 2s);
  EXPECT_EQ(fitness.detail, "stopped");
  EXPECT_EQ(client_.judge(asking("well"), source.get_token()).fitness.detail, "stopped");
}

TEST(WorkerPreparation, ABackendThatCannotBeUsedSaysWhy) {
  PrepareRequest request;
  request.device = 7;
  WorkerClient client(EVO_FAKE_WORKER, request, deadlines);
  EXPECT_EQ(client.prepare().error, "there is no such device");
  EXPECT_THROW(client.judge(asking("well")), std::runtime_error);
}

TEST(WorkerPreparation, OneDeathIsForgivenTwoAreAnError) {
  const auto file = std::filesystem::temp_directory_path() / fmt::format("evo-deaths-{}", getpid());
  setenv("EVO_FAKE_DEATHS", file.c_str(), 1);
  std::ofstream(file) << 1;
  WorkerClient lucky(EVO_FAKE_WORKER, {}, deadlines);
  EXPECT_EQ(lucky.prepare().error, "");
  EXPECT_EQ(lucky.restarts(), 1);

  std::ofstream(file) << 2;
  WorkerClient unlucky(EVO_FAKE_WORKER, {}, deadlines);
  EXPECT_THAT(unlucky.prepare().error, HasSubstr("ended with signal 9 (Killed)"));
  EXPECT_EQ(unlucky.prepare().error, "") << "not tried again";
  unsetenv("EVO_FAKE_DEATHS");
  std::filesystem::remove(file);
}

TEST(WorkerPreparation, NoAnswerAndNoProgramAreErrors) {
  constexpr WorkerDeadlines hasty{.prepare = 200ms, .judge = 1s};
  WorkerClient talker("/usr/bin/yes", {}, hasty);
  EXPECT_EQ(talker.prepare().error, "/usr/bin/yes could not be prepared: no answer within 0.2 s");
  WorkerClient nobody("/nonexistent", {}, hasty);
  EXPECT_THAT(nobody.prepare().error, HasSubstr("No such file or directory"));
}

TEST(FindWorker, NamesWhatIsMissing) {
  setenv("EVO_WORKER", EVO_FAKE_WORKER, 1);
  EXPECT_EQ(find_worker(), EVO_FAKE_WORKER);
  setenv("EVO_WORKER", "/nonexistent", 1);
  EXPECT_THROW(find_worker(), InputError);
  unsetenv("EVO_WORKER");
}

} // namespace
} // namespace evo
