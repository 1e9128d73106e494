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

TEST_F(WorkerClientTest, WhatACandidateWritesIntoTheChannelIsNoAnswer) {
  int restarts = 0;
  for (const std::string how : {"garbage", "forged", "half a line", "late answer"}) {
    const Fitness fitness = judge(how);
    EXPECT_EQ(fitness.verdict, Verdict::Crash) << how;
    EXPECT_THAT(fitness.detail, HasSubstr("it wrote into the result channel: ")) << how;
    expect_recovery(++restarts);
  }
  EXPECT_THAT(judge("garbage").detail, HasSubstr("channel: {\"fitness\": \"great\"}"));
}

TEST_F(WorkerClientTest, ASecondAnswerIsNeverTakenForTheNextOne) {
  EXPECT_EQ(judge("two answers").verdict, Verdict::WrongAnswer);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(judge("garbage").verdict, Verdict::Crash) << "the answer left over was taken";
}

TEST_F(WorkerClientTest, OfAFloodOnlyTheEndIsKept) {
  const Fitness fitness = judge("flood and crash");
  EXPECT_EQ(fitness.verdict, Verdict::Crash);
  EXPECT_LT(fitness.detail.size(), 400u);
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

TEST_F(WorkerClientTest, ACallMayNameItsOwnDeadline) {
  client_.prepare();
  EXPECT_EQ(client_.judge(asking("hang"), 300ms).fitness.detail, "no answer within 0.3 s");
}

/// Workers that take long to start.
class StandbyTest : public testing::Test {
protected:
  StandbyTest() {
    setenv("EVO_FAKE_START", "400", 1);
    request_.sizes = {64};
  }
  ~StandbyTest() override { unsetenv("EVO_FAKE_START"); }

  static std::chrono::milliseconds time_to_judge(WorkerClient& client, const std::string& how) {
    const auto start = Clock::now();
    client.judge(asking(how));
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  }

  PrepareRequest request_;
};

TEST_F(StandbyTest, TakesOverAtOnce) {
  WorkerClient client(EVO_FAKE_WORKER, request_, deadlines, 2);
  client.prepare();
  std::this_thread::sleep_for(600ms);
  client.judge(asking("crash"));
  EXPECT_LT(time_to_judge(client, "crash"), 300ms) << "the first was not ready";
  EXPECT_LT(time_to_judge(client, "well"), 300ms) << "the second was not ready";
  EXPECT_EQ(client.restarts(), 2);

  WorkerClient alone(EVO_FAKE_WORKER, request_, deadlines);
  alone.prepare();
  alone.judge(asking("crash"));
  EXPECT_GE(time_to_judge(alone, "well"), 400ms) << "a start costs nothing here";
}

TEST_F(StandbyTest, ReferencesAreMeasuredOnce) {
  WorkerClient client(EVO_FAKE_WORKER, request_, deadlines, 1);
  const double measured = client.prepare().reference.at(0).reference_ms;
  EXPECT_GT(measured, 0);
  for (int i = 0; i < 2; ++i) { // a standby, and one started after it
    client.judge(asking("crash"));
    EXPECT_EQ(client.prepare().reference.at(0).reference_ms, measured);
  }
}

TEST_F(StandbyTest, OneThatHasDiedWhileItWaitedCostsNothingButTime) {
  const auto file = std::filesystem::temp_directory_path() / fmt::format("evo-waits-{}", getpid());
  setenv("EVO_FAKE_DEATHS", file.c_str(), 1);
  WorkerClient client(EVO_FAKE_WORKER, request_, deadlines, 1);
  std::ofstream(file) << 0;
  client.prepare();
  std::this_thread::sleep_for(600ms);
  std::ofstream(file) << 1; // the next standby, which starts when this one takes over
  client.judge(asking("crash"));
  client.judge(asking("crash"));
  EXPECT_EQ(client.judge(asking("well")).fitness.verdict, Verdict::Ok);
  unsetenv("EVO_FAKE_DEATHS");
  std::filesystem::remove(file);
}

TEST(Deadline, FollowsTheIncumbent) {
  using namespace std::chrono_literals;
  EXPECT_EQ(answer_deadline({}, 13), deadline_without_incumbent);
  EXPECT_EQ(answer_deadline({0.5, 0.5}, 10), 3060ms);
  EXPECT_EQ(answer_deadline({4, 4}, 10), 3480ms) << "a card that is eight times slower";
  EXPECT_GT(answer_deadline({60, 60, 60, 60}, 13), 3 * 13 * 240ms) << "the plainest kernel";
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
