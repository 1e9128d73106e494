// Copies from global to shared memory that have begun and not yet arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fitness/cpu/array.hpp"

namespace evo::cpu {

struct AsyncCopy {
  Range* shared = nullptr; // that it goes to
  std::uintptr_t to = 0;
  std::uintptr_t from = 0;
  std::size_t size = 0;        // bytes
  std::size_t zero_filled = 0; // of them, at the end
  int site = 0;

  void carry_out() const;
};

/// Of the threads of one block. A thread's copies make up groups; they arrive when it waits for
/// their group, and not before.
class AsyncCopies {
public:
  /// Forgets what an earlier block has left.
  void begin_block(unsigned threads) { threads_.assign(threads, {}); }
  void add(unsigned thread, const AsyncCopy& copy) { threads_[thread].open.push_back(copy); }
  /// Whether a copy of the thread to some of these bytes is on its way: which one arrives last is
  /// not said.
  bool overlaps(unsigned thread, std::uintptr_t to, std::size_t size) const;
  /// Closes the thread's group of copies, which may be empty.
  void commit(unsigned thread);
  /// What arrives when the thread waits for all groups but the last few, in order.
  std::vector<AsyncCopy> wait(unsigned thread, std::size_t groups_in_flight);

private:
  struct Thread {
    std::vector<AsyncCopy> open;
    std::vector<std::vector<AsyncCopy>> groups; // the oldest first
  };
  std::vector<Thread> threads_;
};

} // namespace evo::cpu
