// Threads of our own for waiting on other processes, so that TBB's workers never do.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace evo {

/// Runs tasks first in, first out; the destructor finishes those that are queued.
class WaitingPool {
public:
  explicit WaitingPool(int threads);
  WaitingPool(const WaitingPool&) = delete;
  WaitingPool& operator=(const WaitingPool&) = delete;
  ~WaitingPool();

  /// `task` does not throw.
  void run(std::function<void()> task);

private:
  void work();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> tasks_;
  bool closed_ = false;
  std::vector<std::jthread> threads_; // last: joined before the rest is gone
};

} // namespace evo
