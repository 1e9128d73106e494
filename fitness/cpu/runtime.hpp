// CUDA's names on the host, for lowered kernels. Follows abi.hpp in every lowered source; nothing
// else includes it.
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__
#define __launch_bounds__(...)
#define __forceinline__
#define __noinline__
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

namespace std {
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;
} // namespace std

namespace evo_gpu {

// Static, not inline: a GNU system would share inline variables between all loaded kernels.
static Host host;
static Context context;
static const uint3& threadIdx = context.thread_index;
static const uint3& blockIdx = context.block_index;
static const dim3& blockDim = context.block_size;
static const dim3& gridDim = context.grid_size;
constexpr int warpSize = 32;

// Checked accesses: the lowering wraps every lvalue that may lie in memory in one of these.

template <Access kind, typename T> constexpr T& checked(T& place, int site) {
  if (!__builtin_is_constant_evaluated()) {
    host.access(host.executor, kind, __builtin_addressof(place), sizeof(T), alignof(T), site);
  }
  return place;
}
template <typename T> constexpr T& read(T& place, int site) {
  return checked<Access::Read>(place, site);
}
template <typename T> constexpr T& write(T& place, int site) {
  return checked<Access::Write>(place, site);
}
template <typename T> constexpr T& update(T& place, int site) {
  return checked<Access::Update>(place, site);
}

/// An element of a local array.
template <typename T, size_t count> constexpr T& at(T (&array)[count], long index, int site) {
  if (static_cast<size_t>(index) >= count) {
    host.local_index(host.executor, index, count, site);
  }
  return array[index];
}

/// Passes on the value of one floating-point operation.
template <typename T> constexpr T flop(T value) {
  if (!__builtin_is_constant_evaluated()) {
    ++context.flops;
  }
  return value;
}

template <typename T> T& shared(const char* name, int declaration) {
  return *static_cast<T*>(host.shared(host.executor, name, sizeof(T), declaration));
}
template <typename T> T& dynamic_shared(const char* name) {
  return *static_cast<T*>(host.dynamic_shared(host.executor, name));
}

// Launches: launch("gemm", gemm, bound, grid, block, ...)(call of the kernel, arguments...).

template <typename Call, typename... Arguments>
void run(const Launch& configuration, Call call, Arguments... arguments) {
  auto thread = [&] { call(arguments...); };
  host.launch(
      host.executor, &configuration,
      [](void* closure) { (*static_cast<decltype(thread)*>(closure))(); }, &thread);
}

struct Launcher {
  Launch configuration;
  template <typename Call, typename... Arguments>
  void operator()(Call call, Arguments... arguments) const {
    run(configuration, call, arguments...);
  }
};

template <typename Function>
Launcher launch(const char* name, Function* kernel, int max_threads, dim3 grid, dim3 block,
                size_t shared_bytes = 0, void* = nullptr) {
  return {{name, reinterpret_cast<const void*>(kernel), max_threads, grid, block, shared_bytes}};
}

// The runtime API.

enum cudaError { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
typedef enum cudaError cudaError_t;
typedef struct CUstream_st* cudaStream_t;
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

inline cudaError_t cudaGetLastError() {
  return static_cast<cudaError_t>(host.last_error(host.executor));
}
template <typename Function>
cudaError_t cudaFuncSetAttribute(Function* function, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) {
    return cudaSuccess;
  }
  return static_cast<cudaError_t>(
      host.allow_shared(host.executor, reinterpret_cast<const void*>(function), value));
}
inline cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t = nullptr) {
  return static_cast<cudaError_t>(host.fill(host.executor, pointer, value, bytes));
}

// Vector types.

struct __align__(8) int2 {
  int x, y;
};
struct __align__(16) int4 {
  int x, y, z, w;
};
struct __align__(8) uint2 {
  unsigned x, y;
};
struct __align__(16) uint4 {
  unsigned x, y, z, w;
};
struct __align__(8) float2 {
  float x, y;
};
struct __align__(16) float4 {
  float x, y, z, w;
};
inline float2 make_float2(float x, float y) {
  return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
inline int4 make_int4(int x, int y, int z, int w) {
  return {x, y, z, w};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

// Barriers and memory intrinsics; the lowering appends their site.

inline void __syncthreads(int site) {
  host.barrier(host.executor, site);
}
inline void __syncwarp(unsigned = 0xffffffffu) {
  host.warp_barrier(host.executor);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <typename T> T __ldg(const T* address, int site) {
  return read(*address, site);
}
template <typename T> T __ldcs(const T* address, int site) {
  return read(*address, site);
}
template <typename T> T __ldcg(const T* address, int site) {
  return read(*address, site);
}
template <typename T> void __stcs(T* address, T value, int site) {
  write(*address, site) = value;
}
template <typename T> void __stcg(T* address, T value, int site) {
  write(*address, site) = value;
}

inline size_t __cvta_generic_to_shared(const void* address) {
  return reinterpret_cast<size_t>(address);
}

// Shuffles; the lowering appends their site.

inline unsigned lane() {
  return (context.thread_index.x +
          context.block_size.x *
              (context.thread_index.y + context.block_size.y * context.thread_index.z)) %
         warpSize;
}

/// `value` of lane `source`, or the lane's own where that lies beyond the last of its `width`.
template <typename T> T shuffle(unsigned mask, T value, unsigned source, int width, int site) {
  static_assert(sizeof(T) == sizeof(unsigned));
  unsigned bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  const bool beyond = source > (lane() | (width - 1));
  bits = host.shuffle(host.executor, mask, bits, beyond ? lane() : source, site);
  __builtin_memcpy(&value, &bits, sizeof(bits));
  return value;
}
template <typename T> T __shfl_sync(unsigned mask, T value, int source, int width, int site) {
  return shuffle(mask, value, (lane() & ~(width - 1)) | (source & (width - 1)), width, site);
}
template <typename T> T __shfl_sync(unsigned mask, T value, int source, int site) {
  return __shfl_sync(mask, value, source, warpSize, site);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width, int site) {
  return shuffle(mask, value, lane() ^ lane_mask, width, site);
}
template <typename T> T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int site) {
  return __shfl_xor_sync(mask, value, lane_mask, warpSize, site);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width, int site) {
  return shuffle(mask, value, lane() + delta, width, site);
}
template <typename T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int site) {
  return __shfl_down_sync(mask, value, delta, warpSize, site);
}

template <typename T> T atomic_add(T* address, T value, int site) {
  T& place = checked<Access::Atomic>(*address, site);
  const T old = place;
  place = old + value;
  return old;
}
inline int atomicAdd(int* address, int value, int site) {
  return atomic_add(address, value, site);
}
inline float atomicAdd(float* address, float value, int site) {
  return flop(atomic_add(address, value, site));
}

// Asynchronous copies; the lowering appends the sites of both addresses.

inline void __pipeline_memcpy_async(void* to, const void* from, size_t size, size_t zero_filled,
                                    int to_site, int from_site) {
  host.copy_async(host.executor, to, from, size, zero_filled, to_site, from_site);
}
inline void __pipeline_memcpy_async(void* to, const void* from, size_t size, int to_site,
                                    int from_site) {
  host.copy_async(host.executor, to, from, size, 0, to_site, from_site);
}
inline void __pipeline_commit() {
  host.commit_copies(host.executor);
}
inline void __pipeline_wait_prior(size_t groups) {
  host.wait_for_copies(host.executor, groups);
}

// Arithmetic.

inline int min(int a, int b) {
  return a < b ? a : b;
}
inline int max(int a, int b) {
  return a > b ? a : b;
}
inline unsigned min(unsigned a, unsigned b) {
  return a < b ? a : b;
}
inline unsigned max(unsigned a, unsigned b) {
  return a > b ? a : b;
}
inline float fminf(float a, float b) {
  return __builtin_fminf(a, b);
}
inline float fmaxf(float a, float b) {
  return __builtin_fmaxf(a, b);
}
inline float fabsf(float a) {
  return __builtin_fabsf(a);
}
inline float sqrtf(float a) {
  return __builtin_sqrtf(a);
}
inline float rsqrtf(float a) {
  return 1.0f / __builtin_sqrtf(a);
}
inline float expf(float a) {
  return __builtin_expf(a);
}
inline float fmaf(float a, float b, float c) {
  return flop(flop(__builtin_fmaf(a, b, c)));
}
inline float __fmaf_rn(float a, float b, float c) {
  return fmaf(a, b, c);
}
// Not inlined, so that no compiler contracts them into an fma.
__attribute__((noinline)) inline float __fadd_rn(float a, float b) {
  return flop(a + b);
}
__attribute__((noinline)) inline float __fmul_rn(float a, float b) {
  return flop(a * b);
}

// Short floats.

template <typename To, typename From> To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}
inline unsigned __float_as_uint(float value) {
  return bit_cast<unsigned>(value);
}
inline float __uint_as_float(unsigned bits) {
  return bit_cast<float>(bits);
}
inline int __float2int_rn(float value) {
  return static_cast<int>(__builtin_rintf(value));
}

struct __half {
  uint16_t bits;
};
struct __nv_bfloat16 {
  uint16_t bits;
};

/// Rounds the bits of a float to nearest, ties to even, so that the last `count` become 0.
inline unsigned without_last_bits(unsigned bits, int count) {
  return (bits + (1u << (count - 1)) - 1 + (bits >> count & 1)) >> count << count;
}
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  const unsigned bits = __float_as_uint(value);
  return {static_cast<uint16_t>(value != value ? 0x7fffu : without_last_bits(bits, 16) >> 16)};
}
inline float __bfloat162float(__nv_bfloat16 value) {
  return __uint_as_float(unsigned{value.bits} << 16);
}
inline __half __float2half_rn(float value) {
  const unsigned sign = __float_as_uint(value) >> 16 & 0x8000u;
  const float magnitude = __builtin_fabsf(value);
  unsigned bits;
  if (value != value) {
    bits = 0x7fffu;
  } else if (magnitude >= 65520.0f) { // halfway beyond the largest
    bits = 0x7c00u;
  } else if (magnitude < 0x1p-14f) { // subnormal: adding 0.5 rounds to its last bit, 2^-24
    bits = __float_as_uint(magnitude + 0.5f) - __float_as_uint(0.5f);
  } else {
    bits = (without_last_bits(__float_as_uint(magnitude), 13) >> 13) - (112u << 10);
  }
  return {static_cast<uint16_t>(sign | bits)};
}
inline float __half2float(__half value) {
  const unsigned magnitude = value.bits & 0x7fffu;
  const unsigned bits = magnitude >= 0x7c00u
                            ? 0x7f800000u | (magnitude & 0x3ffu) << 13
                            : __float_as_uint(__uint_as_float(magnitude << 13) * 0x1p112f);
  return __uint_as_float((value.bits & 0x8000u) << 16 | bits);
}

// Inline PTX, by the names of mutators/ptx_instruction.cpp.

namespace ptx {

template <bool transposed, typename... Registers>
void load_matrices(unsigned row, int site, Registers&... registers) {
  unsigned fragment[] = {registers...};
  host.load_matrices(host.executor, fragment, sizeof...(registers), transposed, row, site);
  const unsigned* loaded = fragment;
  ((registers = *loaded++), ...);
}
inline void ldmatrix_x1(unsigned& a, unsigned row, int site) {
  load_matrices<false>(row, site, a);
}
inline void ldmatrix_x1_trans(unsigned& a, unsigned row, int site) {
  load_matrices<true>(row, site, a);
}
inline void ldmatrix_x2(unsigned& a, unsigned& b, unsigned row, int site) {
  load_matrices<false>(row, site, a, b);
}
inline void ldmatrix_x2_trans(unsigned& a, unsigned& b, unsigned row, int site) {
  load_matrices<true>(row, site, a, b);
}
inline void ldmatrix_x4(unsigned& a, unsigned& b, unsigned& c, unsigned& d, unsigned row,
                        int site) {
  load_matrices<false>(row, site, a, b, c, d);
}
inline void ldmatrix_x4_trans(unsigned& a, unsigned& b, unsigned& c, unsigned& d, unsigned row,
                              int site) {
  load_matrices<true>(row, site, a, b, c, d);
}

template <MatrixType type, typename Sum>
void multiply(Sum& d0, Sum& d1, Sum& d2, Sum& d3, unsigned a0, unsigned a1, unsigned a2,
              unsigned a3, unsigned b0, unsigned b1, int site) {
  const Sum before[] = {d0, d1, d2, d3};
  unsigned sum[4];
  __builtin_memcpy(sum, before, sizeof(sum));
  const unsigned a[] = {a0, a1, a2, a3};
  const unsigned b[] = {b0, b1};
  host.multiply_matrices(host.executor, type, sum, a, b, site);
  Sum* const after[] = {&d0, &d1, &d2, &d3};
  for (int i = 0; i < 4; ++i) {
    *after[i] = bit_cast<Sum>(sum[i]);
  }
}
template <typename... Operands> void mma_fp16(Operands&&... operands) {
  multiply<MatrixType::Fp16, float>(operands...);
}
template <typename... Operands> void mma_bf16(Operands&&... operands) {
  multiply<MatrixType::Bf16, float>(operands...);
}
template <typename... Operands> void mma_tf32(Operands&&... operands) {
  multiply<MatrixType::Tf32, float>(operands...);
}
template <typename... Operands> void mma_int8(Operands&&... operands) {
  multiply<MatrixType::Int8, int>(operands...);
}

inline void pack_fp16(unsigned& packed, float high, float low, int) {
  packed = unsigned{__float2half_rn(high).bits} << 16 | __float2half_rn(low).bits;
}
inline void pack_bf16(unsigned& packed, float high, float low, int) {
  packed = unsigned{__float2bfloat16_rn(high).bits} << 16 | __float2bfloat16_rn(low).bits;
}
/// To nearest, ties away from zero.
inline void round_tf32(unsigned& rounded, float value, int) {
  const unsigned bits = __float_as_uint(value);
  rounded = value != value ? bits : (bits + 0x1000u) & ~0x1fffu;
}
inline void low_fp16(float& value, unsigned packed, int) {
  value = __half2float({static_cast<uint16_t>(packed)});
}
inline void high_fp16(float& value, unsigned packed, int) {
  value = __half2float({static_cast<uint16_t>(packed >> 16)});
}
inline void low_bf16(float& value, unsigned packed, int) {
  value = __uint_as_float(packed << 16);
}
inline void high_bf16(float& value, unsigned packed, int) {
  value = __uint_as_float(packed & 0xffff0000u);
}

/// To the nearest integer, ties to even, within what an int holds; 0 for a NaN.
inline int to_integer(float value) {
  const double rounded = __builtin_nearbyint(value);
  return value != value             ? 0
         : rounded >= 2147483647.0  ? 2147483647
         : rounded <= -2147483648.0 ? -2147483647 - 1
                                    : static_cast<int>(rounded);
}
inline void slice_int8(unsigned& high, unsigned& middle, unsigned& low, float a, float b, float c,
                       float d, int) {
  const float values[] = {a, b, c, d};
  unsigned* const slices[] = {&low, &middle, &high};
  low = middle = high = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned digits = (static_cast<unsigned>(to_integer(values[i])) + 0x808080u) ^ 0x808080u;
    for (int digit = 0; digit < 3; ++digit) {
      *slices[digit] |= (digits >> 8 * digit & 0xffu) << 8 * i;
    }
  }
}
/// A power of two, at most `most` over the magnitude.
inline float power_of_two(float most, float largest) {
  return __uint_as_float(__float_as_uint(most / fmaxf(largest, 0x1p-100f)) & 0xff800000u);
}
inline void scale_int8(float& scale, float largest, int) {
  scale = power_of_two(127.0f * 65536.0f, largest);
}
inline void unit_int8(float& unit, float scale, int) {
  unit = 65536.0f / scale;
}
inline void scale_fp16(float& scale, float largest, int) {
  scale = power_of_two(0x1p14f, largest);
}
inline void unit_fp16(float& unit, float scale, int) {
  unit = 1.0f / scale;
}
inline void next_order_int8(int& a, int& b, int& c, int& d, unsigned& left_over, int) {
  left_over = 0;
  int* const sums[] = {&a, &b, &c, &d};
  for (int i = 0; i < 4; ++i) {
    left_over |= (static_cast<unsigned>(*sums[i]) & 0xffu) << 8 * i;
    *sums[i] >>= 8;
  }
}
inline void sum_int8(float& a, float& b, float& c, float& d, int sum_a, int sum_b, int sum_c,
                     int sum_d, unsigned left_over, int) {
  const int sums[] = {sum_a, sum_b, sum_c, sum_d};
  float* const values[] = {&a, &b, &c, &d};
  for (int i = 0; i < 4; ++i) {
    *values[i] = __builtin_fmaf(static_cast<float>(left_over >> 8 * i & 0xffu), 0x1p-8f,
                                static_cast<float>(sums[i]));
  }
}

} // namespace ptx

} // namespace evo_gpu
