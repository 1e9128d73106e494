#include "fitness/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fitness/spawner.hpp"

namespace evo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t output_limit = 1 << 20;
constexpr std::size_t log_limit = 64 << 10;
constexpr std::size_t line_limit = 16 << 20;
// A child's end and a stop are noticed by looking this often; data and end of file at once.
constexpr std::chrono::milliseconds tick{20};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe make_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  }
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

UniqueFd open_null() {
  return UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC));
}

void make_nonblocking(const UniqueFd& fd) {
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

enum class Drained { Empty, Closed };

/// Passes everything a non-blocking descriptor has to `consume`, but returns after a while when
/// the writer is faster than we are, so that deadlines still hold.
template <typename Consume> Drained drain(const UniqueFd& fd, Consume consume) {
  std::array<char, 16 << 10> chunk;
  for (int rounds = 0; rounds < 64; ++rounds) {
    const ssize_t got = read(fd.get(), chunk.data(), chunk.size());
    if (got > 0) {
      consume(std::string_view(chunk.data(), got));
    } else if (got == 0) {
      return Drained::Closed;
    } else if (errno != EINTR) {
      return errno == EAGAIN ? Drained::Empty : Drained::Closed;
    }
  }
  return Drained::Empty;
}

/// Whether the child has ended; it stays a zombie, so that its group's number stays ours.
bool has_ended(pid_t pid) {
  siginfo_t info{};
  const int rc = waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT);
  return rc == 0 && info.si_pid == pid;
}

/// Kills what is left of the group and reaps its leader.
void end_group(pid_t pid, ProcessResult& result) {
  ::kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
  } else {
    result.exit_code = WEXITSTATUS(status);
  }
}

int poll_timeout(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()) +
                    std::chrono::milliseconds(1);
  return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), tick).count());
}

} // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void UniqueFd::reset() {
  if (fd_ >= 0) {
    close(std::exchange(fd_, -1));
  }
}

std::string ProcessResult::reason() const {
  if (stopped) {
    return "stopped";
  }
  if (timed_out) {
    return fmt::format("past its deadline of {:g} s", deadline.count() / 1000.0);
  }
  if (signal != 0) {
    return fmt::format("signal {} ({})", signal, strsignal(signal));
  }
  return fmt::format("exit code {}", exit_code);
}

ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options,
                          std::stop_token stop) {
  const UniqueFd null = open_null();
  Pipe output = make_pipe();
  make_nonblocking(output.read);
  const pid_t pid = spawn({.command = command,
                           .directory = options.directory.string(),
                           .environment = options.environment,
                           .descriptors = {null.get(), output.write.get(), output.write.get()}});
  output.write.reset();

  ProcessResult result;
  result.deadline = options.deadline;
  const auto deadline = Clock::now() + options.deadline;
  const auto append = [&](std::string_view text) {
    result.output += text.substr(0, output_limit - result.output.size());
  };
  while (true) {
    // The order matters: what a child wrote before it ended is read after its end was seen.
    const bool ended = has_ended(pid);
    if (drain(output.read, append) == Drained::Closed) {
      output.read.reset(); // poll skips a negative descriptor
    }
    if (ended) {
      break;
    }
    result.stopped = stop.stop_requested();
    result.timed_out = !result.stopped && Clock::now() >= deadline;
    if (result.stopped || result.timed_out) {
      break;
    }
    pollfd ready{output.read.get(), POLLIN, 0};
    poll(&ready, 1, poll_timeout(deadline));
  }
  end_group(pid, result);
  return result;
}

ChannelProcess::ChannelProcess(const std::vector<std::string>& command) {
  const UniqueFd null = open_null();
  Pipe answers = make_pipe();
  Pipe log = make_pipe();
  // A socket, for a pipe has no MSG_NOSIGNAL.
  int requests[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, requests) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a socket pair");
  }
  to_child_ = UniqueFd(requests[0]);
  const UniqueFd childs_end(requests[1]);
  from_child_ = std::move(answers.read);
  log_ = std::move(log.read);
  make_nonblocking(from_child_);
  make_nonblocking(log_);
  pid_ = spawn({.command = command,
                .directory = {},
                .environment = {},
                .descriptors = {null.get(), log.write.get(), log.write.get(), childs_end.get(),
                                answers.write.get()}});
}

ChannelProcess::~ChannelProcess() {
  kill();
}

bool ChannelProcess::running() const {
  return pid_ >= 0 && !has_ended(pid_);
}

bool ChannelProcess::send(const std::string& line) {
  const std::string message = line + "\n";
  std::string_view left = message;
  while (!left.empty()) {
    const ssize_t sent = ::send(to_child_.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) {
      return false;
    }
    left.remove_prefix(std::max<ssize_t>(sent, 0));
  }
  return true;
}

ChannelProcess::Read ChannelProcess::receive(std::string& line, std::chrono::milliseconds deadline,
                                             std::stop_token stop) {
  const auto end = Clock::now() + deadline;
  while (true) {
    const bool ended = !running();
    const auto drained = drain(from_child_, [this](std::string_view text) { buffer_ += text; });
    read_log();
    if (const auto newline = buffer_.find('\n'); newline != std::string::npos) {
      line = buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      return Read::Line;
    }
    if (ended || drained == Drained::Closed) {
      return Read::Closed;
    }
    if (buffer_.size() > line_limit) {
      kill();
      return Read::Closed;
    }
    if (stop.stop_requested() || Clock::now() >= end) {
      return Read::Timeout;
    }
    std::array<pollfd, 2> ready{pollfd{from_child_.get(), POLLIN, 0},
                                pollfd{log_.get(), POLLIN, 0}};
    poll(ready.data(), ready.size(), poll_timeout(end));
  }
}

bool ChannelProcess::has_unread() {
  drain(from_child_, [this](std::string_view text) { buffer_ += text; });
  return !buffer_.empty();
}

void ChannelProcess::terminate() {
  if (pid_ >= 0) {
    ::kill(-pid_, SIGKILL);
  }
}

ProcessResult ChannelProcess::kill(std::chrono::milliseconds grace) {
  if (pid_ < 0) {
    return result_;
  }
  const auto end = Clock::now() + grace;
  while (!has_ended(pid_) && Clock::now() < end) {
    read_log();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  end_group(std::exchange(pid_, -1), result_);
  read_log();
  return result_;
}

void ChannelProcess::read_log() {
  const auto keep_the_last = [this](std::string_view text) {
    result_.output += text;
    if (result_.output.size() > 2 * log_limit) {
      result_.output.erase(0, result_.output.size() - log_limit);
    }
  };
  if (drain(log_, keep_the_last) == Drained::Closed) {
    log_.reset();
  }
}

} // namespace evo
