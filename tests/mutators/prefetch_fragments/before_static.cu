// label: rows/step prefetch fragments
#include <cuda_runtime.h>

constexpr int rows_steps = 8;
constexpr int rows_block = 32;
constexpr int rows_each = 4;

__global__ void rows(const float *A, const float *B, float *C, int n) {
  __shared__ float a[rows_each][rows_steps];
  alignas(16) __shared__ float b[rows_steps][rows_block * 2];
  const int column = blockIdx.x * rows_block * 2;
  float low[rows_each] = {};
  float high[rows_each] = {};
  for (int first = 0; first < n; first += rows_steps) {
    for (int i = threadIdx.x; i < rows_each * rows_steps; i += rows_block) {
      const int k = first + i % rows_steps;
      a[i / rows_steps][i % rows_steps] = k < n ? A[i / rows_steps * n + k] : 0.0f;
    }
    for (int i = threadIdx.x; i < rows_steps * rows_block * 2; i += rows_block) {
      const int k = first + i / (rows_block * 2);
      const int j = column + i % (rows_block * 2);
      b[i / (rows_block * 2)][i % (rows_block * 2)] = k < n && j < n ? B[k * n + j] : 0.0f;
    }
    __syncthreads();
#pragma unroll 2
    for (int step = 0; step < rows_steps; ++step) {
      const float2 pair = *reinterpret_cast<const float2 *>(&b[step][threadIdx.x * 2]);
      float left[rows_each];
#pragma unroll
      for (int i = 0; i < rows_each; ++i) {
        left[i] = a[i][step];
      }
      for (int i = 0; i < rows_each; ++i) {
        low[i] += left[i] * pair.x;
        high[i] += left[i] * pair.y;
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < rows_each; ++i) {
    if (column + threadIdx.x * 2 < n) {
      C[i * n + column + threadIdx.x * 2] = low[i];
    }
    if (column + threadIdx.x * 2 + 1 < n) {
      C[i * n + column + threadIdx.x * 2 + 1] = high[i];
    }
  }
}

extern "C" cudaError_t product(const float *A, const float *B, float *C, int n,
                               cudaStream_t stream) {
  rows<<<(n + rows_block * 2 - 1) / (rows_block * 2), rows_block, 0, stream>>>(A, B, C, n);
  return cudaGetLastError();
}
