// What a lowered kernel file and the executor that runs it share. It is C++17 without any library,
// because it is also the head of every lowered source.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace evo_gpu {

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

enum class Access : int { Read, Write, Update, Atomic };

/// What mma.sync multiplies; the sums are int32 for int8, and float32 for all others.
enum class MatrixType : int { Fp16, Bf16, Tf32, Int8 };

/// A place in the source that accesses memory or waits, for messages and for telling which
/// accesses of a warp's lanes belong together.
struct Site {
  const char* text;
  int line;
};

struct Launch {
  const char* kernel;
  const void* function;
  int max_threads; // __launch_bounds__, or the device's limit
  dim3 grid;
  dim3 block;
  size_t shared_bytes; // dynamic
};

/// The executor, as the lowered code calls it. Every function gets `executor` first, and may throw
/// through the lowered code.
struct Host {
  void* executor;
  void (*launch)(void* executor, const Launch* launch, void (*thread)(void*), void* closure);
  /// Checks one access before it happens; size and alignment are the type's.
  void (*access)(void* executor, Access access, const volatile void* address, size_t size,
                 size_t alignment, int site);
  /// An index outside a local array of `count` elements.
  void (*local_index)(void* executor, long index, size_t count, int site);
  void (*barrier)(void* executor, int site);
  void (*warp_barrier)(void* executor);
  /// Begins a copy from global to shared memory, whose last bytes are zeros.
  void (*copy_async)(void* executor, void* to, const void* from, size_t size, size_t zero_filled,
                     int to_site, int from_site);
  void (*commit_copies)(void* executor);
  /// Until the running thread's copies have arrived, those of its last groups aside.
  void (*wait_for_copies)(void* executor, size_t groups_in_flight);

  // What a warp's lanes do together: each waits until all have come.

  /// `value` of another lane. `mask`: those that take part.
  unsigned (*shuffle)(void* executor, unsigned mask, unsigned value, unsigned source_lane,
                      int site);
  /// ldmatrix: `row` is where this lane's row of 16 bytes begins, in shared memory; one register
  /// per matrix.
  void (*load_matrices)(void* executor, unsigned* fragment, int matrices, bool transposed,
                        unsigned row, int site);
  /// mma.sync: `sum` has 4 registers, `a` 4 and `b` 2.
  void (*multiply_matrices)(void* executor, MatrixType type, unsigned* sum, const unsigned* a,
                            const unsigned* b, int site);

  void* (*shared)(void* executor, const char* name, size_t bytes, int declaration);
  void* (*dynamic_shared)(void* executor, const char* name);
  int (*allow_shared)(void* executor, const void* function, int bytes);
  int (*fill)(void* executor, void* address, int value, size_t bytes);
  int (*last_error)(void* executor);
};

/// The thread that runs now.
struct Context {
  uint3 thread_index;
  uint3 block_index;
  dim3 block_size;
  dim3 grid_size;
  uint64_t flops; // of all threads so far
};

/// The symbol evo_gpu_module of a lowered library.
struct Module {
  Host* host;
  Context* context;
  const Site* sites;
  int site_count;
  int granule;          // bytes of the smallest element accessed: what conflicts are told by
  int max_shared_bytes; // per block, after opting in
};

} // namespace evo_gpu
