#include "fitness/cpu/device.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace evo::cpu {
namespace {

using evo_gpu::dim3;
using evo_gpu::uint3;

constexpr std::size_t default_shared_bytes = 48 << 10; // what a block gets without opting in
constexpr unsigned max_grid_yz = 65535;
constexpr int invalid_value = 1; // cudaErrorInvalidValue

unsigned long volume(const dim3& size) {
  return 1ul * size.x * size.y * size.z;
}

uint3 coordinates(unsigned long index, const dim3& size) {
  return {static_cast<unsigned>(index % size.x), static_cast<unsigned>(index / size.x % size.y),
          static_cast<unsigned>(index / size.x / size.y)};
}

std::string text(const dim3& size) {
  return fmt::format("({}, {}, {})", size.x, size.y, size.z);
}

const char* verb(Access access) {
  switch (access) {
  case Access::Read:
    return "reads";
  case Access::Write:
    return "writes";
  case Access::Update:
    return "updates";
  case Access::Atomic:
    return "atomically updates";
  }
  return "accesses";
}

/// How many of a grid's blocks are run.
unsigned long executed(Extent extent, unsigned long blocks) {
  return extent == Extent::Grid ? blocks : extent == Extent::FirstBlock ? 1 : 0;
}

} // namespace

struct Device::Hooks {
  static Device& of(void* executor) { return *static_cast<Device*>(executor); }
  static std::uintptr_t number(const volatile void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
  }

  static void launch(void* executor, const evo_gpu::Launch* launch, void (*thread)(void*),
                     void* closure) {
    of(executor).launch(*launch, thread, closure);
  }
  static void access(void* executor, Access access, const volatile void* address, std::size_t size,
                     std::size_t alignment, int site) {
    of(executor).access(access, number(address), size, alignment, site);
  }
  static void local_index(void* executor, long index, std::size_t count, int site) {
    of(executor).fail(Verdict::OutOfBounds,
                      fmt::format("uses index {} of a local array of {} elements", index, count),
                      site);
  }
  static void barrier(void* executor, int site) { of(executor).block_->wait_for_block(site); }
  static void warp_barrier(void* executor) { of(executor).block_->wait_for_warp(); }
  static void copy_async(void* executor, void* to, const void* from, std::size_t size,
                         std::size_t zero_filled, int to_site, int from_site) {
    of(executor).copy_async({.to = number(to),
                             .from = number(from),
                             .size = size,
                             .zero_filled = zero_filled,
                             .site = to_site},
                            from_site);
  }
  static void commit_copies(void* executor) {
    of(executor).copies_.commit(thread_of(of(executor).now_.stamp));
  }
  static void wait_for_copies(void* executor, std::size_t groups_in_flight) {
    of(executor).wait_for_copies(groups_in_flight);
  }
  static unsigned shuffle(void* executor, unsigned mask, unsigned value, unsigned source,
                          int site) {
    return of(executor).shuffle(mask, value, source, site);
  }
  static void load_matrices(void* executor, unsigned* fragment, int matrices, bool transposed,
                            unsigned row, int site) {
    of(executor).load_matrices({fragment, static_cast<std::size_t>(matrices)}, transposed, row,
                               site);
  }
  static void multiply_matrices(void* executor, evo_gpu::MatrixType type, unsigned* sum,
                                const unsigned* a, const unsigned* b, int site) {
    of(executor).multiply_matrices(type, {sum, a, b}, site);
  }
  static void* shared(void* executor, const char* name, std::size_t bytes, int declaration) {
    return of(executor).shared(name, bytes, declaration);
  }
  static void* dynamic_shared(void* executor, const char* name) {
    return of(executor).dynamic_shared(name);
  }
  static int allow_shared(void* executor, const void* function, int bytes) {
    return of(executor).allow_shared(function, bytes);
  }
  static int fill(void* executor, void* address, int value, std::size_t bytes) {
    return of(executor).fill(number(address), value, bytes);
  }
  static int last_error(void* executor) { return std::exchange(of(executor).last_error_, 0); }
};

Device::Device(const evo_gpu::Module& module, const RunOptions& options)
    : module_(module), granule_shift_(std::countr_zero(static_cast<unsigned>(module.granule))),
      options_(options), block_order_(options.order, options.shuffle_seed),
      thread_order_(options.order, ~options.shuffle_seed), last_range_(module.site_count, &stack_) {
  *module_.host = {this,
                   Hooks::launch,
                   Hooks::access,
                   Hooks::local_index,
                   Hooks::barrier,
                   Hooks::warp_barrier,
                   Hooks::copy_async,
                   Hooks::commit_copies,
                   Hooks::wait_for_copies,
                   Hooks::shuffle,
                   Hooks::load_matrices,
                   Hooks::multiply_matrices,
                   Hooks::shared,
                   Hooks::dynamic_shared,
                   Hooks::allow_shared,
                   Hooks::fill,
                   Hooks::last_error};
  *module_.context = {};
}

Device::~Device() {
  *module_.host = {};
}

Array& Device::allocate(const std::string& name, std::size_t bytes) {
  global_.push_back(std::make_unique<Array>(name, Space::Global, bytes, module_.granule));
  return *global_.back();
}

void Device::add_constants(std::uintptr_t begin, std::size_t bytes) {
  constants_ = {.name = "the program's constants",
                .space = Space::Private,
                .read_only = true,
                .begin = begin,
                .size = bytes,
                .cells = nullptr};
}

// Launches.

void Device::launch(const evo_gpu::Launch& launch, void (*thread)(void*), void* closure) {
  launch_ = &launch;
  check_configuration(launch);
  const auto threads = static_cast<unsigned>(volume(launch.block));
  const unsigned long blocks = volume(launch.grid);
  shared_.clear();
  dynamic_shared_ = std::make_unique<Array>("dynamic shared memory", Space::Shared,
                                            launch.shared_bytes, module_.granule);
  std::ranges::fill(last_range_, &stack_);
  blocks_.clear();
  // Threads without accesses end, too.
  budget_ -= static_cast<std::int64_t>(executed(options_.extent, blocks) * threads);
  now_.launch = interval_ + 1;
  module_.context->block_size = launch.block;
  module_.context->grid_size = launch.grid;
  module_.context->flops = 0;
  barriers_ = 0;
  counter_.begin_launch(threads, module_.site_count);

  Block block(stacks_, thread_order_, threads,
              {.run_thread = [=] { thread(closure); },
               .resumed = [this](auto... place) { resume_thread(place...); },
               .barrier_passed =
                   [this] {
                     ++barriers_;
                     enter_interval();
                   },
               .site_name = [this](int site) { return site_name(site); }});
  block_ = &block;
  const auto count = static_cast<unsigned>(executed(options_.extent, blocks));
  for (const unsigned index : block_order_.next(count)) {
    begin_block(index);
    if (const auto divergence = block.run()) {
      throw Fault{Verdict::Hang,
                  fmt::format("{}: in {} {}", launch.kernel, block_name(now_.stamp), *divergence)};
    }
  }
  enter_interval();
  block_ = nullptr;
  if (options_.count) {
    add_counts();
  }
}

void Device::check_configuration(const evo_gpu::Launch& launch) const {
  const auto refuse = [&](const std::string& reason) {
    throw Fault{Verdict::LaunchError,
                fmt::format("{} cannot be launched: {}", launch.kernel, reason)};
  };
  const dim3& grid = launch.grid;
  const dim3& block = launch.block;
  if (volume(grid) == 0 || grid.x > 0x7fffffffu || grid.y > max_grid_yz || grid.z > max_grid_yz) {
    refuse(fmt::format("its grid is {}", text(grid)));
  }
  if (volume(block) == 0 || block.x > max_threads || block.y > max_threads || block.z > 64 ||
      volume(block) > max_threads) {
    refuse(
        fmt::format("its block is {}, and a block has 1 to {} threads", text(block), max_threads));
  }
  if (volume(block) > static_cast<unsigned long>(launch.max_threads)) {
    refuse(fmt::format("its block is {}, beyond its launch bounds of {} threads", text(block),
                       launch.max_threads));
  }
  if (executed(options_.extent, volume(grid)) * volume(block) >
      static_cast<unsigned long>(budget_)) {
    throw Fault{Verdict::Hang, fmt::format("{} is launched on a grid of {}, more than these sizes "
                                           "could need",
                                           launch.kernel, text(grid))};
  }
  check_shared_bytes(launch.shared_bytes);
}

/// Static and dynamic shared memory of the block that runs or is about to.
void Device::check_shared_bytes(std::size_t bytes) const {
  const auto allowed = allowed_shared_.find(launch_->function);
  const std::size_t limit = allowed == allowed_shared_.end()
                                ? default_shared_bytes
                                : std::max(default_shared_bytes, allowed->second);
  if (bytes > limit) {
    throw Fault{Verdict::LaunchError,
                fmt::format("{} cannot be launched: it needs {} bytes of shared memory per block, "
                            "and has {} ({})",
                            launch_->kernel, bytes, limit,
                            allowed == allowed_shared_.end()
                                ? "cudaFuncSetAttribute asks for no more"
                                : "as cudaFuncSetAttribute asks")};
  }
}

void Device::begin_block(unsigned long index) {
  enter_interval();
  now_.block = interval_;
  now_.stamp = make_stamp(interval_, 0, 0);
  blocks_.push_back({interval_, coordinates(index, launch_->grid)});
  module_.context->block_index = blocks_.back().index;
  dynamic_shared_->poison();
  copies_.begin_block(static_cast<unsigned>(volume(launch_->block)));
}

void Device::enter_interval() {
  ++interval_;
  counter_.flush();
}

void Device::resume_thread(unsigned thread, unsigned warp_interval, std::byte* stack_top) {
  module_.context->thread_index = coordinates(thread, launch_->block);
  now_.stamp = make_stamp(interval_, warp_interval, thread);
  stack_.begin = reinterpret_cast<std::uintptr_t>(stack_top) - StackPool::stack_bytes;
  stack_.size = StackPool::stack_bytes;
}

void Device::add_counts() {
  const AccessCounts& accesses = counter_.counts();
  LaunchCounts counts;
  counts.kernel = launch_->kernel;
  counts.blocks = static_cast<double>(volume(launch_->grid));
  counts.threads = static_cast<double>(volume(launch_->block));
  counts.shared_bytes = static_cast<double>(launch_->shared_bytes);
  counts.global_load_sectors = accesses.global_load_sectors;
  counts.global_store_sectors = accesses.global_store_sectors;
  counts.shared_load_wavefronts = accesses.shared_load_wavefronts;
  counts.shared_store_wavefronts = accesses.shared_store_wavefronts;
  counts.memory_instructions = accesses.instructions;
  counts.flops = static_cast<double>(module_.context->flops);
  counts.barriers = static_cast<double>(barriers_);
  if (options_.extent == Extent::FirstBlock) {
    for (double LaunchCounts::* total : launch_totals) {
      counts.*total *= counts.blocks;
    }
  }
  counts_.push_back(counts);
}

// Accesses.

void Device::access(Access access, std::uintptr_t address, std::size_t size, std::size_t alignment,
                    int site) {
  if (block_ == nullptr) {
    return; // a __host__ __device__ function on the host
  }
  Range& range = checked_range(access, address, size, alignment, site);
  // Reads of what nobody may write conflict with nothing: their shadow only serves counting.
  if (range.cells != nullptr && (!range.read_only || options_.count)) {
    touch(range, access, address, size, site);
  }
}

/// The range of an access, if it is allowed.
Range& Device::checked_range(Access access, std::uintptr_t address, std::size_t size,
                             std::size_t alignment, int site) {
  Range* range = last_range_[site];
  if (--budget_ < 0 || !range->holds(address, size) || (address & (alignment - 1)) != 0 ||
      (range->read_only && access != Access::Read)) {
    range = last_range_[site] = &locate(access, address, size, alignment, site);
  }
  return *range;
}

/// The range of an access that is not the site's last one, if the access is allowed.
Range& Device::locate(Access access, std::uintptr_t address, std::size_t size,
                      std::size_t alignment, int site) {
  if (budget_ < 0) {
    fail(Verdict::Hang,
         "is still running after as many memory accesses as a terminating kernel could need", site);
  }
  const std::vector<Range*> all = ranges();
  const auto found =
      std::ranges::find_if(all, [&](const Range* range) { return range->holds(address, size); });
  if (found == all.end()) {
    fail_outside(access, address, size, site);
  }
  Range& range = **found;
  if ((address & (alignment - 1)) != 0) {
    fail(Verdict::Crash,
         fmt::format("{} {} misaligned: the address is no multiple of {} bytes", verb(access),
                     element(range, address), alignment),
         site);
  }
  if (range.read_only && access != Access::Read) {
    fail(Verdict::TouchedInput, fmt::format("{} {}", verb(access), element(range, address)), site);
  }
  return range;
}

/// Notes the access in its cells' shadow. Returns whether the thread held all of them.
bool Device::mark(Range& range, Access access, std::uintptr_t address, std::size_t size,
                  int site) const {
  const std::uint64_t since = range.space == Space::Shared ? now_.block : now_.launch;
  const std::size_t offset = address - range.begin;
  const std::size_t last = (offset + size - 1) >> granule_shift_;
  bool held = true;
  for (std::size_t index = offset >> granule_shift_; index <= last; ++index) {
    Cell& cell = range.cells[index];
    held = held && cell.held(now_);
    Touch touch;
    if (access == Access::Read || access == Access::Update) {
      touch = cell.read(now_, since);
    }
    if (access != Access::Read && touch.conflict == 0) {
      touch = cell.modify(now_, since, access == Access::Atomic);
    }
    if (touch.conflict != 0) {
      fail_race(range, range.begin + (index << granule_shift_), access, touch, site);
    }
  }
  return held;
}

void Device::touch(Range& range, Access access, std::uintptr_t address, std::size_t size,
                   int site) {
  const bool held = mark(range, access, address, size, site);
  if (options_.count) {
    const auto record = [&](bool store, bool skip) {
      counter_.record(site, thread_of(now_.stamp), address, size, range.space, store, skip);
    };
    if (access == Access::Read || access == Access::Update) {
      record(false, held);
    }
    if (access != Access::Read) {
      record(true, false);
    }
  }
}

/// Until it arrives, a copy may write at any time, so nobody else may touch its target between its
/// beginning and the next barrier; and whoever reads it too early reads NaN.
void Device::copy_async(const AsyncCopy& copy, int from_site) {
  const auto aligned = [&](std::uintptr_t address) { return address % copy.size == 0; };
  if ((copy.size != 4 && copy.size != 8 && copy.size != 16) || copy.zero_filled > copy.size) {
    fail(Verdict::Crash,
         fmt::format("copies {} bytes asynchronously, {} of them zeros; possible are 4, 8 and 16",
                     copy.size, copy.zero_filled),
         copy.site);
  }
  if (copy.zero_filled < copy.size) {
    access(Access::Read, copy.from, copy.size - copy.zero_filled, copy.size, from_site);
  } else if (!aligned(copy.from)) {
    fail(Verdict::Crash,
         fmt::format("copies from an address that is no multiple of {} bytes", copy.size),
         from_site);
  }
  access(Access::Write, copy.to, copy.size, copy.size, copy.site);
  AsyncCopy begun = copy;
  begun.shared = last_range_[copy.site];
  if (begun.shared->space != Space::Shared ||
      (copy.zero_filled < copy.size && last_range_[from_site]->space != Space::Global)) {
    fail(Verdict::Crash, "copies asynchronously, but not from global to shared memory", copy.site);
  }
  if (copies_.overlaps(thread_of(now_.stamp), copy.to, copy.size)) {
    fail(Verdict::Race,
         fmt::format("begins a copy to {} while another one is on its way,",
                     element(*begun.shared, copy.to)),
         copy.site);
  }
  std::memset(reinterpret_cast<void*>(copy.to), 0xff, copy.size); // NaN
  copies_.add(thread_of(now_.stamp), begun);
}

void Device::wait_for_copies(std::size_t groups_in_flight) {
  for (const AsyncCopy& copy : copies_.wait(thread_of(now_.stamp), groups_in_flight)) {
    mark(*copy.shared, Access::Write, copy.to, copy.size, copy.site);
    copy.carry_out();
  }
}

std::vector<Range*> Device::ranges() {
  std::vector<Range*> all{&stack_, &constants_, dynamic_shared_.get()};
  for (auto& [declaration, shared] : shared_) {
    all.push_back(shared.array.get());
  }
  for (const auto& array : global_) {
    all.push_back(array.get());
  }
  return all;
}

// Shared memory.

void* Device::shared(const char* name, std::size_t bytes, int declaration) {
  Shared& shared = shared_[declaration];
  if (!shared.array) {
    shared.array = std::make_unique<Array>(name, Space::Shared, bytes, module_.granule);
    std::size_t total = launch_->shared_bytes;
    for (const auto& [other, memory] : shared_) {
      total += memory.array->size;
    }
    check_shared_bytes(total);
  }
  if (shared.block != now_.block) {
    shared.block = now_.block;
    shared.array->poison();
  }
  return shared.array->as<std::byte>().data();
}

void* Device::dynamic_shared(const char* name) {
  dynamic_shared_->name = name;
  return dynamic_shared_->as<std::byte>().data();
}

int Device::allow_shared(const void* function, int bytes) {
  if (bytes < 0 || bytes > module_.max_shared_bytes) {
    return last_error_ = invalid_value;
  }
  allowed_shared_[function] = static_cast<std::size_t>(bytes);
  return 0;
}

int Device::fill(std::uintptr_t address, int value, std::size_t bytes) {
  if (options_.extent == Extent::Nothing) {
    return 0;
  }
  for (const auto& array : global_) {
    if (bytes != 0 && array->holds(address, bytes)) {
      if (array->read_only) {
        throw Fault{Verdict::TouchedInput, fmt::format("a memset writes {}", array->name)};
      }
      ++interval_;
      std::memset(reinterpret_cast<void*>(address), value, bytes);
      const std::size_t last = (address + bytes - 1 - array->begin) >> granule_shift_;
      for (std::size_t index = (address - array->begin) >> granule_shift_; index <= last; ++index) {
        array->cells[index].write = make_stamp(interval_, 0, 0);
      }
      return 0;
    }
  }
  if (bytes != 0) {
    throw Fault{Verdict::OutOfBounds, "a memset goes beyond every buffer"};
  }
  return 0;
}

// What went wrong.

std::string Device::element(const Range& range, std::uintptr_t address) const {
  const auto offset = static_cast<std::ptrdiff_t>(address - range.begin);
  return fmt::format("{}{}[{}]", range.space == Space::Shared ? "shared " : "", range.name,
                     offset / static_cast<std::ptrdiff_t>(sizeof(float)));
}

std::string Device::block_name(Stamp stamp) const {
  const auto after = std::ranges::upper_bound(blocks_, interval_of(stamp), {}, &BlockRun::first);
  const uint3& index = std::prev(after)->index;
  return fmt::format("block ({}, {}, {})", index.x, index.y, index.z);
}

std::string Device::site_name(int site) const {
  const evo_gpu::Site& place = module_.sites[site];
  return fmt::format("`{}` in line {}", place.text, place.line);
}

void Device::fail(Verdict verdict, const std::string& what, int site) const {
  if (block_ == nullptr) {
    throw Fault{verdict, fmt::format("host code {} at {}", what, site_name(site))};
  }
  throw Fault{verdict,
              fmt::format("{}: thread {} of {} {} at {}", launch_->kernel, thread_of(now_.stamp),
                          block_name(now_.stamp), what, site_name(site))};
}

void Device::fail_outside(Access access, std::uintptr_t address, std::size_t size, int site) {
  for (const Range* range : ranges()) {
    if (range->cells != nullptr && range->is_near(address)) {
      fail(Verdict::OutOfBounds,
           fmt::format("{} {}, outside its {} elements", verb(access), element(*range, address),
                       range->size / sizeof(float)),
           site);
    }
  }
  fail(Verdict::OutOfBounds,
       fmt::format("{} {} bytes of memory that belongs to no buffer", verb(access), size), site);
}

void Device::fail_race(const Range& range, std::uintptr_t address, Access access,
                       const Touch& touch, int site) const {
  const bool same_block = interval_of(touch.conflict) >= now_.block;
  fail(Verdict::Race,
       fmt::format("{} {}, which thread {}{} {} {},", verb(access), element(range, address),
                   thread_of(touch.conflict), same_block ? "" : " of " + block_name(touch.conflict),
                   verb(touch.with),
                   same_block ? "between the same barriers" : "in the same launch"),
       site);
}

} // namespace evo::cpu
