// The ways a run may end early: SIGINT, SIGTERM, and the time budget.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace evo {

/// While it lives, the first signal or the end of the budget requests a stop, and a second signal,
/// 0.3 s later or more, ends the process at once (the kernel then kills its children). One at a
/// time.
class Interruption {
public:
  /// The budget counts from here; nullopt: none.
  explicit Interruption(std::optional<std::chrono::duration<double>> budget);
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  std::stop_token token() const { return stop_.get_token(); }
  /// "SIGINT", "SIGTERM" or "the time budget"; empty before a stop.
  std::string reason() const;
  /// Somebody wants the end now, not only of the search.
  bool by_signal() const;

private:
  using Clock = std::chrono::steady_clock;

  void watch(Clock::time_point end);

  std::stop_source stop_;
  std::thread watcher_;
};

} // namespace evo
