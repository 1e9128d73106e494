// Child processes that cannot outlive or outlast us.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <sys/types.h>

namespace evo {

struct ProcessResult {
  int exit_code = -1; // meaningful when !signal
  int signal = 0;     // the signal that ended it
  bool timed_out = false;
  bool stopped = false;
  std::string output; // stdout and stderr together, the first megabyte

  bool ok() const { return exit_code == 0 && signal == 0 && !timed_out && !stopped; }
  /// "exit code 2", "signal 11 (Segmentation fault)", "past its deadline of 60 s".
  std::string reason() const;
};

struct ProcessOptions {
  std::filesystem::path directory;             // empty: ours
  std::map<std::string, std::string> environment; // added to ours
  std::chrono::milliseconds deadline{60000};
};

/// Runs a command to its end. The child is a session of its own with parent-death signal SIGKILL;
/// at the deadline or on stop its whole group is killed. Throws std::system_error only when the
/// process cannot be started.
ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options,
                          std::stop_token stop = {});

/// A long-lived child with a line channel: requests to its descriptor 3, answers from its
/// descriptor 4; its stdout and stderr go to a bounded log.
class ChannelProcess {
public:
  explicit ChannelProcess(const std::vector<std::string>& command);
  ChannelProcess(const ChannelProcess&) = delete;
  ChannelProcess& operator=(const ChannelProcess&) = delete;
  ~ChannelProcess(); // kills the group and reaps it

  enum class Read { Line, Timeout, Closed };

  /// False when the child is gone.
  bool send(const std::string& line);
  /// Waits for one whole line; `line` is untouched unless Read::Line.
  Read receive(std::string& line, std::chrono::milliseconds deadline, std::stop_token stop = {});
  /// Kills the group, reaps the child, returns how it ended.
  ProcessResult kill();

private:
  pid_t pid_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
  std::string buffer_;
};

} // namespace evo
