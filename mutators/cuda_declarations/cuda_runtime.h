// The part of CUDA that evo's kernels use, as declarations only: parsing needs no more, takes
// milliseconds and does not depend on the toolkit's version. nvcc compiles against the real headers
// and has the last word. Source: CUDA C++ Programming Guide, "C++ Language Extensions", and the
// CUDA Runtime API reference.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

typedef __SIZE_TYPE__ size_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINTPTR_TYPE__ uintptr_t;

namespace std {
using ::size_t;
using ::int8_t;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::uint8_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uintptr_t;
} // namespace std

struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  __host__ __device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
      : x(x), y(y), z(z) {}
};
struct __align__(8) int2 { int x, y; };
struct __align__(16) int4 { int x, y, z, w; };
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
struct __align__(8) float2 { float x, y; };
struct __align__(16) float4 { float x, y, z, w; };
__host__ __device__ float2 make_float2(float x, float y);
__host__ __device__ float4 make_float4(float x, float y, float z, float w);
__host__ __device__ int4 make_int4(int x, int y, int z, int w);
__host__ __device__ uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w);

extern __device__ const uint3 threadIdx;
extern __device__ const uint3 blockIdx;
extern __device__ const dim3 blockDim;
extern __device__ const dim3 gridDim;
extern __device__ const int warpSize;

__device__ void __syncthreads();
__device__ void __syncwarp(unsigned mask = 0xffffffffu);
__device__ void __threadfence();
__device__ void __threadfence_block();
__device__ float __shfl_sync(unsigned mask, float value, int lane, int width = 32);
__device__ int __shfl_sync(unsigned mask, int value, int lane, int width = 32);
__device__ unsigned __shfl_sync(unsigned mask, unsigned value, int lane, int width = 32);
__device__ float __shfl_xor_sync(unsigned mask, float value, int lane_mask, int width = 32);
__device__ int __shfl_xor_sync(unsigned mask, int value, int lane_mask, int width = 32);
__device__ unsigned __shfl_xor_sync(unsigned mask, unsigned value, int lane_mask, int width = 32);
__device__ float __shfl_down_sync(unsigned mask, float value, unsigned delta, int width = 32);
__device__ int __shfl_down_sync(unsigned mask, int value, unsigned delta, int width = 32);
__device__ unsigned __shfl_down_sync(unsigned mask, unsigned value, unsigned delta,
                                     int width = 32);
__device__ float atomicAdd(float *address, float value);
__device__ int atomicAdd(int *address, int value);
template <typename T> __device__ T __ldg(const T *address);
template <typename T> __device__ T __ldcs(const T *address);
template <typename T> __device__ T __ldcg(const T *address);
template <typename T> __device__ void __stcs(T *address, T value);
template <typename T> __device__ void __stcg(T *address, T value);
__device__ size_t __cvta_generic_to_shared(const void *address);

__host__ __device__ int min(int a, int b);
__host__ __device__ int max(int a, int b);
__host__ __device__ unsigned min(unsigned a, unsigned b);
__host__ __device__ unsigned max(unsigned a, unsigned b);
__host__ __device__ float fminf(float a, float b);
__host__ __device__ float fmaxf(float a, float b);
__host__ __device__ float fmaf(float a, float b, float c);
__host__ __device__ float fabsf(float a);
__host__ __device__ float sqrtf(float a);
__host__ __device__ float rsqrtf(float a);
__host__ __device__ float expf(float a);
__device__ float __fmaf_rn(float a, float b, float c);
__device__ float __fadd_rn(float a, float b);
__device__ float __fmul_rn(float a, float b);
__device__ int __float2int_rn(float value);
__device__ unsigned __float_as_uint(float value);
__device__ float __uint_as_float(unsigned bits);

enum cudaError { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
typedef enum cudaError cudaError_t;
typedef struct CUstream_st *cudaStream_t;
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
cudaError_t cudaGetLastError();
template <typename Function>
cudaError_t cudaFuncSetAttribute(Function *function, cudaFuncAttribute attribute, int value);
cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream = nullptr);

// What the compiler itself calls for <<<...>>>.
extern "C" unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0,
                                                cudaStream_t stream = nullptr);
extern "C" cudaError_t cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0,
                                         cudaStream_t stream = nullptr);
