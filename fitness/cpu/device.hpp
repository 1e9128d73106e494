// The simulated GPU: memory, launches, and the checks of every access.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fitness/cpu/abi.hpp"
#include "fitness/cpu/array.hpp"
#include "fitness/cpu/async_copies.hpp"
#include "fitness/cpu/block.hpp"
#include "fitness/cpu/counter.hpp"
#include "fitness/cpu/executor.hpp"
#include "fitness/cpu/fault.hpp"
#include "fitness/cpu/order.hpp"
#include "fitness/cpu/tensor_core.hpp"

namespace evo::cpu {

/// One call of a lowered library's entry. Everything the kernel does wrong throws a Fault.
class Device {
public:
  /// Binds the module to this device until the destructor.
  Device(const evo_gpu::Module& module, const RunOptions& options);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  Array& allocate(const std::string& name, std::size_t bytes);
  /// The library's own constants may be read.
  void add_constants(std::uintptr_t begin, std::size_t bytes);
  /// From here on, at most this many checked accesses.
  void set_budget(std::int64_t accesses) { budget_ = accesses; }

  const std::vector<LaunchCounts>& counts() const { return counts_; }

private:
  struct Hooks; // the functions of evo_gpu::Host
  struct Shared {
    std::unique_ptr<Array> array;
    std::uint64_t block = 0; // the one that it is poisoned for
  };
  struct BlockRun {
    std::uint64_t first = 0; // interval
    evo_gpu::uint3 index;
  };

  void launch(const evo_gpu::Launch& launch, void (*thread)(void*), void* closure);
  void check_configuration(const evo_gpu::Launch& launch) const;
  void check_shared_bytes(std::size_t bytes) const;
  void begin_block(unsigned long index);
  void resume_thread(unsigned thread, unsigned warp_interval, std::byte* stack_top);
  void enter_interval();
  void add_counts();

  void access(Access access, std::uintptr_t address, std::size_t size, std::size_t alignment,
              int site);
  void touch(Range& range, Access access, std::uintptr_t address, std::size_t size, int site);
  bool mark(Range& range, Access access, std::uintptr_t address, std::size_t size, int site) const;
  Range& checked_range(Access access, std::uintptr_t address, std::size_t size,
                       std::size_t alignment, int site);
  Range& locate(Access access, std::uintptr_t address, std::size_t size, std::size_t alignment,
                int site);
  std::vector<Range*> ranges();
  void copy_async(const AsyncCopy& copy, int from_site);
  void wait_for_copies(std::size_t groups_in_flight);
  void require_whole_warp(unsigned mask, int site) const;
  unsigned shuffle(unsigned mask, unsigned value, unsigned source, int site);
  void load_matrices(std::span<unsigned> fragment, bool transposed, unsigned row, int site);
  std::uintptr_t row_address(unsigned row, int site);
  void multiply_matrices(evo_gpu::MatrixType type, const MatrixRegisters& registers, int site);
  void* shared(const char* name, std::size_t bytes, int declaration);
  void* dynamic_shared(const char* name);
  int allow_shared(const void* function, int bytes);
  int fill(std::uintptr_t address, int value, std::size_t bytes);

  std::string element(const Range& range, std::uintptr_t address) const;
  std::string block_name(Stamp stamp) const;
  std::string site_name(int site) const;
  [[noreturn]] void fail(Verdict verdict, const std::string& what, int site) const;
  [[noreturn]] void fail_outside(Access access, std::uintptr_t address, std::size_t size, int site);
  [[noreturn]] void fail_race(const Range& range, std::uintptr_t address, Access access,
                              const Touch& touch, int site) const;

  evo_gpu::Module module_;
  int granule_shift_;
  RunOptions options_;
  Permuter block_order_;
  Permuter thread_order_;
  StackPool stacks_;
  std::vector<std::unique_ptr<Array>> global_;
  Range constants_;
  std::map<const void*, std::size_t> allowed_shared_; // by kernel, after opting in
  int last_error_ = 0;
  std::int64_t budget_ = 0;
  std::vector<LaunchCounts> counts_;

  // The launch, block and thread that run now.
  const evo_gpu::Launch* launch_ = nullptr;
  Block* block_ = nullptr;
  std::map<int, Shared> shared_; // static, by declaration
  std::unique_ptr<Array> dynamic_shared_;
  Range stack_;
  std::vector<Range*> last_range_; // by site: where it accessed last
  std::vector<BlockRun> blocks_;   // in order of execution
  std::uint64_t interval_ = 0;
  Now now_;
  AsyncCopies copies_;
  AccessCounter counter_;
  std::uint64_t barriers_ = 0;
};

} // namespace evo::cpu
