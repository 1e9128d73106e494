#include "fitness/traces.hpp"

#include <atomic>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

namespace evo {
namespace {

using namespace std::chrono_literals;

void expect_suspicion(const std::optional<CandidateFailure>& left, const std::string& detail) {
  ASSERT_TRUE(left);
  EXPECT_EQ(left->verdict, Verdict::Suspicious);
  EXPECT_THAT(left->detail, testing::HasSubstr(detail));
}

TEST(Traces, NothingIsLeftByWhatCleansUp) {
  const Traces traces;
  std::thread([] {}).join();
  if (const pid_t child = fork(); child == 0) {
    _exit(0);
  } else {
    waitpid(child, nullptr, 0);
  }
  close(open("/proc/self/maps", O_RDONLY));
  EXPECT_FALSE(traces.left());
}

TEST(Traces, AThreadThatRunsOnIsFound) {
  const Traces traces;
  std::atomic<bool> end = false;
  std::jthread left([&end] { end.wait(false); });
  expect_suspicion(traces.left(), "leaves a thread running");
  end = true;
  end.notify_all();
}

TEST(Traces, AThreadFromBeforeIsNobodysFault) {
  std::atomic<bool> end = false;
  std::jthread early([&end] { end.wait(false); });
  EXPECT_FALSE(Traces().left());
  end = true;
  end.notify_all();
}

TEST(Traces, AChildIsFoundAndEnded) {
  const Traces traces;
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  expect_suspicion(traces.left(), "leaves a process behind");
  EXPECT_EQ(kill(child, 0), -1) << "it lives";
}

TEST(Traces, AGrandchildInASessionOfItsOwnIsFoundAndEnded) {
  adopt_orphans();
  const Traces traces;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  if (const pid_t child = fork(); child == 0) {
    setsid();
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      pause();
    }
    _exit(write(ends[1], &grandchild, sizeof grandchild) > 0 ? 0 : 1);
  } else {
    waitpid(child, nullptr, 0);
  }
  pid_t grandchild = 0;
  ASSERT_EQ(read(ends[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  close(ends[0]);
  close(ends[1]);
  expect_suspicion(traces.left(), "leaves a process behind");
  EXPECT_EQ(kill(grandchild, 0), -1) << "it lives";
}

TEST(Traces, AFileLeftOpenIsNamed) {
  const Traces traces;
  const int file = open(EVO_SOURCE_DIR "/README.md", O_RDONLY);
  expect_suspicion(traces.left(), "README.md open");
  close(file);
  const int device = open("/dev/null", O_RDONLY);
  EXPECT_FALSE(traces.left()) << "a driver opens devices when it likes";
  close(device);
}

} // namespace
} // namespace evo
