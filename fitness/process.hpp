// Child processes that cannot outlive or outlast us.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace evo {

struct ProcessResult {
  int exit_code = -1; // meaningful when !signal
  int signal = 0;     // the signal that ended it
  bool timed_out = false;
  bool stopped = false;
  std::chrono::milliseconds deadline{0}; // the one it ran under
  std::string output;                    // stdout and stderr together, the first megabyte

  bool ok() const { return exit_code == 0 && signal == 0 && !timed_out && !stopped; }
  /// "exit code 2", "signal 11 (Segmentation fault)", "past its deadline of 60 s".
  std::string reason() const;
};

struct ProcessOptions {
  std::filesystem::path directory;                // empty: ours
  std::map<std::string, std::string> environment; // added to ours
  std::chrono::milliseconds deadline{60000};
};

/// Runs a command to its end, stdin empty. The child is a session of its own with parent-death
/// signal SIGKILL; at its end, at the deadline or on stop what is left of its group is killed.
/// Throws std::system_error only when the process cannot be started.
ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options,
                          std::stop_token stop = {});

/// Owns a file descriptor.
class UniqueFd {
public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  void reset();

private:
  int fd_ = -1;
};

/// A long-lived child with a line channel: requests to its descriptor 3, answers from its
/// descriptor 4; the last 64 KiB of its stdout and stderr are kept as a log. A child that sends a
/// line longer than 16 MiB is killed.
class ChannelProcess {
public:
  explicit ChannelProcess(const std::vector<std::string>& command);
  ChannelProcess(const ChannelProcess&) = delete;
  ChannelProcess& operator=(const ChannelProcess&) = delete;
  ~ChannelProcess(); // kills the group and reaps it

  enum class Read { Line, Timeout, Closed };

  bool running() const;

  /// False when the child is gone.
  bool send(const std::string& line);
  /// Waits for one whole line; `line` is untouched unless Read::Line.
  Read receive(std::string& line, std::chrono::milliseconds deadline, std::stop_token stop = {});
  /// Whether the child has said something that nobody has waited for.
  bool has_unread();
  /// Ends the group without waiting for it, which may take long when a device is to be freed.
  void terminate();
  /// Reaps a child that has ended by itself within `grace`, else kills the group and reaps; returns
  /// how it ended, with the log as its output. Later calls return the same.
  ProcessResult kill(std::chrono::milliseconds grace = std::chrono::milliseconds(0));

private:
  void read_log();

  pid_t pid_ = -1;
  UniqueFd to_child_;
  UniqueFd from_child_;
  UniqueFd log_;
  std::string buffer_;
  ProcessResult result_;
};

} // namespace evo
