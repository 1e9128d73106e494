#include "fitness/process.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fitness/spawner.hpp"

namespace evo {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

ProcessResult shell(const std::string& script, std::chrono::milliseconds deadline = 10s,
                    std::stop_token stop = {}) {
  return run_process({"sh", "-c", script},
                     {.directory = {}, .environment = {}, .deadline = deadline}, stop);
}

ChannelProcess echo_child() {
  return ChannelProcess({"sh", "-c", "while read -r line <&3; do echo \"$line\" >&4; done"});
}

/// A file in which a process under test writes its number.
class PidFile {
public:
  PidFile() : path_(std::filesystem::temp_directory_path() / fmt::format("evo-pid-{}", getpid())) {
    std::filesystem::remove(path_);
  }
  ~PidFile() { std::filesystem::remove(path_); }

  std::string path() const { return path_.string(); }

  pid_t wait() const { return wait_for(1).at(0); }

  std::vector<pid_t> wait_for(std::size_t count) const {
    std::vector<pid_t> pids;
    for (int i = 0; i < 500 && pids.size() < count; ++i) {
      std::this_thread::sleep_for(10ms);
      std::ifstream stream(path_);
      pids = {std::istream_iterator<pid_t>(stream), {}};
    }
    pids.resize(count);
    return pids;
  }

private:
  std::filesystem::path path_;
};

/// A zombie that waits for init counts as gone.
bool alive(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string number, name, state;
  return stat >> number >> name >> state && state != "Z" && state != "X";
}

bool dies_soon(pid_t pid) {
  for (int i = 0; i < 200 && alive(pid); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  return !alive(pid);
}

TEST(Process, ReportsExitCodeAndBothStreams) {
  const ProcessResult result = shell("echo out; echo err >&2; exit 3");
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_EQ(result.reason(), "exit code 3");
}

TEST(Process, ReportsTheSignal) {
  const ProcessResult result = shell("kill -SEGV $$");
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_EQ(result.reason(), "signal 11 (Segmentation fault)");
}

TEST(Process, HasItsDirectoryEnvironmentAndAnEmptyStdin) {
  const ProcessResult result =
      run_process({"sh", "-c", "pwd; echo $EVO_WORD; cat"},
                  {.directory = "/", .environment = {{"EVO_WORD", "kernel"}}, .deadline = 10s});
  EXPECT_EQ(result.output, "/\nkernel\n");
  EXPECT_TRUE(result.ok());
}

TEST(Process, TheDeadlineKillsGrandchildrenToo) {
  const PidFile file;
  const auto start = Clock::now();
  const ProcessResult result =
      shell(fmt::format("sh -c 'echo $$ > {}; sleep 60' & wait", file.path()), 500ms);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.reason(), "past its deadline of 0.5 s");
  EXPECT_LT(Clock::now() - start, 2s);
  const pid_t grandchild = file.wait();
  ASSERT_GT(grandchild, 0);
  EXPECT_TRUE(dies_soon(grandchild));
}

TEST(Process, WhatItLeavesBehindIsKilledAtItsEnd) {
  const PidFile file;
  const auto start = Clock::now();
  EXPECT_TRUE(shell(fmt::format("sleep 60 & echo $! > {}", file.path())).ok());
  EXPECT_LT(Clock::now() - start, 5s) << "waited for a background process's stdout";
  EXPECT_TRUE(dies_soon(file.wait()));
}

TEST(Process, OutputIsCapped) {
  const ProcessResult result = shell("head -c 3000000 /dev/zero | tr '\\0' x");
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.output, std::string(1 << 20, 'x'));
}

TEST(Process, AFloodDoesNotHoldUpTheDeadline) {
  const auto start = Clock::now();
  EXPECT_TRUE(shell("yes", 300ms).timed_out);
  EXPECT_LT(Clock::now() - start, 3s);
}

TEST(Process, StopEndsIt) {
  std::stop_source source;
  std::jthread later([&source] {
    std::this_thread::sleep_for(100ms);
    source.request_stop();
  });
  const auto start = Clock::now();
  const ProcessResult result = shell("sleep 60", 60s, source.get_token());
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.reason(), "stopped");
  EXPECT_LT(Clock::now() - start, 2s);
}

TEST(Process, AMissingProgramAndAMissingDirectoryThrow) {
  EXPECT_THROW(run_process({"/nonexistent/program"}, {}), std::system_error);
  EXPECT_THROW(run_process({"true"}, {.directory = "/nonexistent", .environment = {}}),
               std::system_error);
}

TEST(Process, InheritsNoDescriptor) {
  const int leaked = open("/dev/null", O_RDONLY); // not close-on-exec
  const ProcessResult result = shell("ls /proc/self/fd");
  close(leaked);
  EXPECT_EQ(result.output, "0\n1\n2\n3\n"); // 3 is ls reading the directory
}

TEST(Process, OutlivesTheThreadThatAskedForIt) {
  std::unique_ptr<ChannelProcess> child;
  std::thread([&child] {
    child = std::make_unique<ChannelProcess>(
        std::vector<std::string>{"sh", "-c", "read -r line <&3; echo $line >&4; sleep 60"});
  }).join();
  std::this_thread::sleep_for(200ms);
  ASSERT_TRUE(child->send("still here"));
  std::string line;
  EXPECT_EQ(child->receive(line, 5s), ChannelProcess::Read::Line);
  EXPECT_EQ(line, "still here");
}

TEST(Process, DiesWithItsParent) {
  const PidFile file;
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const pid_t parent = spawn({.command = {EVO_PROCESS_PARENT, file.path()},
                              .directory = {},
                              .environment = {},
                              .descriptors = {null, null, null}});
  close(null);
  const pid_t child = file.wait();
  ASSERT_GT(child, 0);
  ASSERT_TRUE(alive(child));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  EXPECT_TRUE(dies_soon(child));
}

TEST(Process, WorkersAndTheirStandbysDieWithTheEngine) {
  const PidFile file;
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const pid_t engine = spawn({.command = {EVO_PROCESS_PARENT, file.path(), EVO_FAKE_WORKER},
                              .directory = {},
                              .environment = {{"EVO_FAKE_PIDS", file.path()}},
                              .descriptors = {null, null, null}});
  close(null);
  const std::vector<pid_t> workers = file.wait_for(3);
  for (const pid_t worker : workers) {
    ASSERT_GT(worker, 0);
    ASSERT_TRUE(alive(worker));
  }
  kill(engine, SIGKILL);
  waitpid(engine, nullptr, 0);
  for (const pid_t worker : workers) {
    EXPECT_TRUE(dies_soon(worker));
  }
}

TEST(Channel, CarriesLinesBothWays) {
  ChannelProcess child = echo_child();
  std::string line;
  for (const std::string text : {"first", "second"}) {
    ASSERT_TRUE(child.send(text));
    ASSERT_EQ(child.receive(line, 5s), ChannelProcess::Read::Line);
    EXPECT_EQ(line, text);
  }
}

TEST(Channel, SilenceIsATimeoutAndStopEndsTheWait) {
  ChannelProcess child = echo_child();
  std::string line = "untouched";
  EXPECT_EQ(child.receive(line, 100ms), ChannelProcess::Read::Timeout);
  std::stop_source source;
  source.request_stop();
  const auto start = Clock::now();
  EXPECT_EQ(child.receive(line, 60s, source.get_token()), ChannelProcess::Read::Timeout);
  EXPECT_LT(Clock::now() - start, 2s);
  EXPECT_EQ(line, "untouched");
}

TEST(Channel, TheLastWordsOfADyingChildAreRead) {
  ChannelProcess child({"sh", "-c", "echo words >&4; echo log; kill -SEGV $$"});
  std::string line;
  EXPECT_EQ(child.receive(line, 5s), ChannelProcess::Read::Line);
  EXPECT_EQ(line, "words");
  EXPECT_EQ(child.receive(line, 5s), ChannelProcess::Read::Closed);
  const ProcessResult result = child.kill(1s);
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_EQ(result.output, "log\n");
  EXPECT_EQ(child.kill().signal, SIGSEGV) << "the second answer differs";
}

TEST(Channel, SendingToADeadChildIsFalseAndNoSignal) {
  ChannelProcess child({"true"});
  std::string line;
  EXPECT_EQ(child.receive(line, 5s), ChannelProcess::Read::Closed);
  child.kill(5s);
  EXPECT_FALSE(child.send("anyone?"));
}

TEST(Channel, AFloodOfOutputNeitherBlocksNorGrows) {
  ChannelProcess child(
      {"sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x; echo end >&2; echo done >&4"});
  std::string line;
  EXPECT_EQ(child.receive(line, 20s), ChannelProcess::Read::Line);
  EXPECT_EQ(line, "done");
  const std::string log = child.kill(1s).output;
  EXPECT_LE(log.size(), 128u << 10);
  EXPECT_THAT(log, HasSubstr("xend\n"));
}

TEST(Channel, AnEndlessLineEndsTheChild) {
  ChannelProcess child({"sh", "-c", "exec cat /dev/zero >&4"});
  std::string line;
  EXPECT_EQ(child.receive(line, 20s), ChannelProcess::Read::Closed);
}

} // namespace
} // namespace evo
