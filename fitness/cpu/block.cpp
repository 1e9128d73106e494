#include "fitness/cpu/block.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

namespace evo::cpu {
namespace {

constexpr std::size_t guard_bytes = 4096;

} // namespace

StackPool::~StackPool() {
  for (const auto& stack : free_) {
    munmap(static_cast<std::byte*>(stack.sp) - stack.size - guard_bytes, stack.size + guard_bytes);
  }
}

boost::context::stack_context StackPool::take() {
  if (!free_.empty()) {
    const auto stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* memory = mmap(nullptr, stack_bytes + guard_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, guard_bytes, PROT_NONE) != 0) {
    throw std::bad_alloc();
  }
  boost::context::stack_context stack;
  stack.size = stack_bytes;
  stack.sp = static_cast<std::byte*>(memory) + guard_bytes + stack_bytes;
  return stack;
}

/// Boost's interface to the pool; notes where the stack is.
class Block::Allocator {
public:
  Allocator(StackPool& pool, Thread& thread) : pool_(&pool), thread_(&thread) {}

  boost::context::stack_context allocate() {
    const auto stack = pool_->take();
    thread_->stack_top = static_cast<std::byte*>(stack.sp);
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) { pool_->give_back(stack); }

private:
  StackPool* pool_;
  Thread* thread_;
};

Block::Block(StackPool& stacks, Permuter& permuter, unsigned threads, BlockEvents events)
    : stacks_(stacks), permuter_(permuter), events_(std::move(events)), threads_(threads),
      warp_intervals_((threads + warp_size - 1) / warp_size) {}

std::optional<std::string> Block::run() {
  const auto count = static_cast<unsigned>(threads_.size());
  for (Thread& thread : threads_) {
    thread.state = State::Ready;
  }
  std::ranges::fill(warp_intervals_, 0u);
  while (!all_done()) {
    for (const unsigned index : permuter_.next(count)) {
      if (threads_[index].state == State::Ready) {
        resume(index);
      }
      if (fault_) {
        // Ends the other threads too: a suspended fiber unwinds when it is destroyed.
        threads_.clear();
        throw *std::exchange(fault_, std::nullopt);
      }
    }
    if (!release_warps() && !release_block() && !all_done()) {
      std::string detail = divergence();
      threads_.clear();
      return detail;
    }
  }
  return std::nullopt;
}

void Block::start(Thread& thread) {
  thread.fiber = boost::context::fiber(std::allocator_arg, Allocator(stacks_, thread),
                                       [this, &thread](boost::context::fiber&& scheduler) {
                                         scheduler_ = std::move(scheduler);
                                         try {
                                           events_.run_thread();
                                         } catch (Fault& fault) {
                                           fault_ = std::move(fault);
                                         }
                                         thread.state = State::Done;
                                         return std::move(scheduler_);
                                       });
}

void Block::resume(unsigned index) {
  running_ = index;
  Thread& thread = threads_[index];
  if (!thread.fiber) { // only now: a thread that waits nowhere passes its stack on to the next
    start(thread);
  }
  events_.resumed(index, warp_intervals_[index / warp_size], thread.stack_top);
  thread.fiber = std::move(thread.fiber).resume();
}

void Block::wait(State state, int site) {
  Thread& thread = threads_[running_];
  thread.state = state;
  thread.site = site;
  scheduler_ = std::move(scheduler_).resume();
}

void Block::meet(int site, void* operands, WarpOperation operation) {
  threads_[running_].operands = operands;
  threads_[running_].operation = operation;
  wait(State::AtWarpOperation, site);
}

/// Lets every warp go on whose threads have all come to its barrier or to one operation.
bool Block::release_warps() {
  bool released = false;
  for (std::size_t index = 0; index < warp_intervals_.size(); ++index) {
    const Warp rest = Warp(threads_).subspan(index * warp_size);
    const Warp warp = rest.first(std::min<std::size_t>(rest.size(), warp_size));
    if (release_from_barrier(warp)) {
      ++warp_intervals_[index];
      released = true;
    } else {
      released = operate(warp) || released;
    }
  }
  return released;
}

bool Block::release_from_barrier(Warp warp) {
  const auto waits = [](const Thread& thread) { return thread.state == State::AtWarpBarrier; };
  const bool complete = std::ranges::all_of(
      warp, [&](const Thread& thread) { return waits(thread) || thread.state == State::Done; });
  if (!complete || std::ranges::none_of(warp, waits)) {
    return false;
  }
  for (Thread& thread : warp) {
    thread.state = waits(thread) ? State::Ready : thread.state;
  }
  return true;
}

bool Block::operate(Warp warp) {
  const Thread& first = warp.front();
  const bool complete =
      warp.size() == warp_size && std::ranges::all_of(warp, [&](const Thread& thread) {
        return thread.state == State::AtWarpOperation && thread.site == first.site;
      });
  if (!complete) {
    return false;
  }
  Lanes lanes;
  std::ranges::transform(warp, lanes.begin(), &Thread::operands);
  first.operation(lanes);
  for (Thread& thread : warp) {
    thread.state = State::Ready;
  }
  return true;
}

/// Lets the block go on if all its threads, none of them gone, wait at one barrier.
bool Block::release_block() {
  const bool complete = std::ranges::all_of(threads_, [&](const Thread& thread) {
    return thread.state == State::AtBarrier && thread.site == threads_.front().site;
  });
  if (!complete) {
    return false;
  }
  for (Thread& thread : threads_) {
    thread.state = State::Ready;
  }
  std::ranges::fill(warp_intervals_, 0u);
  events_.barrier_passed();
  return true;
}

bool Block::all_done() const {
  return std::ranges::all_of(threads_,
                             [](const Thread& thread) { return thread.state == State::Done; });
}

std::string Block::divergence() const {
  auto waiting = std::ranges::find(threads_, State::AtWarpOperation, &Thread::state);
  auto others = threads_.cbegin(); // where one is that has gone elsewhere
  if (waiting != threads_.end()) {
    others += (waiting - threads_.cbegin()) / warp_size * warp_size;
  } else {
    waiting = std::ranges::find_if(
        threads_, [](const Thread& thread) { return thread.state != State::Done; });
  }
  const auto other = std::find_if(others, threads_.cend(), [&](const Thread& thread) {
    return thread.state != waiting->state || thread.site != waiting->site;
  });
  const auto place = [&](const Thread& thread) {
    switch (thread.state) {
    case State::AtBarrier:
    case State::AtWarpOperation:
      return "waits at " + events_.site_name(thread.site);
    case State::AtWarpBarrier:
      return std::string("waits at a barrier of its warp");
    default:
      return std::string("has returned");
    }
  };
  return fmt::format("thread {} {} while thread {} {}", waiting - threads_.begin(), place(*waiting),
                     other - threads_.begin(), place(*other));
}

} // namespace evo::cpu
