#include "population/interruption.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace evo {
namespace {

constexpr int budget_is_over = -1; // beside signal numbers
constexpr unsigned char end_of_watch = 0;
constexpr long longest_wait_ms = 3600 * 1000; // poll takes an int

// One request may come as two signals: `timeout` sends one to its child and one to the group.
constexpr std::int64_t same_request_ns = 300'000'000;

// What a signal handler may touch.
std::atomic<int> cause = 0;
std::atomic<std::int64_t> first_signal_ns = 0;
std::array<int, 2> pipe_ends{-1, -1};

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now); // may be called in a handler
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

extern "C" void on_signal(int signal) {
  std::int64_t none = 0;
  if (!first_signal_ns.compare_exchange_strong(none, now_ns())) {
    if (now_ns() - first_signal_ns > same_request_ns) {
      _exit(128 + signal);
    }
    return;
  }
  int no_cause = 0;
  cause.compare_exchange_strong(no_cause, signal);
  const int kept = errno;
  const auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] const auto written = write(pipe_ends[1], &byte, 1);
  errno = kept;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

} // namespace

Interruption::Interruption(std::optional<std::chrono::duration<double>> budget) {
  cause = 0;
  first_signal_ns = 0;
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  const auto end = budget ? Clock::now() + std::chrono::duration_cast<Clock::duration>(*budget)
                          : Clock::time_point::max();
  watcher_ = std::thread([this, end] { watch(end); });
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
}

Interruption::~Interruption() {
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
  [[maybe_unused]] const auto written = write(pipe_ends[1], &end_of_watch, 1);
  watcher_.join();
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

std::string Interruption::reason() const {
  switch (cause) {
  case 0:
    return "";
  case SIGINT:
    return "SIGINT";
  case SIGTERM:
    return "SIGTERM";
  default:
    return "the time budget";
  }
}

bool Interruption::by_signal() const {
  return cause > 0;
}

void Interruption::watch(Clock::time_point end) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    const long wait_ms = std::clamp<long>(left.count(), 0, longest_wait_ms);
    pollfd ready{.fd = pipe_ends[0], .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, static_cast<int>(wait_ms)) > 0) {
      unsigned char byte = end_of_watch;
      if (read(pipe_ends[0], &byte, 1) == 1 && byte == end_of_watch) {
        return;
      }
      stop_.request_stop();
    } else if (Clock::now() >= end) {
      int none = 0;
      cause.compare_exchange_strong(none, budget_is_over);
      stop_.request_stop();
      end = Clock::time_point::max();
    }
  }
}

} // namespace evo
