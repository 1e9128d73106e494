// The threads of one block as fibers that switch at barriers.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/context/fiber.hpp>

#include "fitness/cpu/fault.hpp"
#include "fitness/cpu/order.hpp"
#include "fitness/cpu/shadow.hpp"

namespace evo::cpu {

/// Reused stacks, each with an inaccessible page below it.
class StackPool {
public:
  static constexpr std::size_t stack_bytes = 128 << 10;

  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  boost::context::stack_context take();
  void give_back(boost::context::stack_context stack) { free_.push_back(stack); }

private:
  std::vector<boost::context::stack_context> free_;
};

/// What a block's threads and its surroundings tell each other.
struct BlockEvents {
  std::function<void()> run_thread; // the kernel, called on the thread's own stack
  /// Before a thread goes on: its index, its warp's interval, the top of its stack.
  std::function<void(unsigned thread, unsigned warp_interval, std::byte* stack_top)> resumed;
  std::function<void()> barrier_passed;
  std::function<std::string(int site)> site_name; // of a barrier, for messages
};

/// What each lane of a warp brings to what they do together, by lane.
using Lanes = std::array<void*, warp_size>;
/// Does it. It must not throw.
using WarpOperation = void (*)(const Lanes& lanes);

/// Runs one block to its end. One object serves all blocks of a launch.
class Block {
public:
  Block(StackPool& stacks, Permuter& permuter, unsigned threads, BlockEvents events);

  /// Throws the Fault of a thread. Returns a sentence when some threads never come to a barrier
  /// that others wait at.
  std::optional<std::string> run();

  /// Called by the running thread; return when all others have come.
  void wait_for_block(int site) { wait(State::AtBarrier, site); }
  void wait_for_warp() { wait(State::AtWarpBarrier, -1); }
  /// Returns when all 32 lanes of the warp have come to one site, and after `operation` was done.
  /// Orders no accesses to memory: that takes a barrier.
  void meet(int site, void* operands, WarpOperation operation);

private:
  enum class State { Ready, AtBarrier, AtWarpBarrier, AtWarpOperation, Done };
  struct Thread {
    boost::context::fiber fiber;
    std::byte* stack_top = nullptr;
    State state = State::Ready;
    int site = -1;
    void* operands = nullptr; // at a warp operation
    WarpOperation operation = nullptr;
  };
  using Warp = std::span<Thread>;
  class Allocator;

  void start(Thread& thread);
  void resume(unsigned index);
  void wait(State state, int site);
  bool release_warps();
  static bool release_from_barrier(Warp warp);
  static bool operate(Warp warp);
  bool release_block();
  bool all_done() const;
  std::string divergence() const;

  StackPool& stacks_;
  Permuter& permuter_;
  BlockEvents events_;
  std::vector<Thread> threads_;
  std::vector<unsigned> warp_intervals_;
  boost::context::fiber scheduler_;
  unsigned running_ = 0;
  std::optional<Fault> fault_;
};

} // namespace evo::cpu
