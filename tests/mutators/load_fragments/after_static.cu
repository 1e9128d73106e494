// label: rows/k#2 fragments
#include <cuda_runtime.h>

constexpr int rows_k = 8;
constexpr int rows_per_thread = 4;
constexpr int rows_block = 64;

// C = A B for A with rows_k columns and a row of blocks.
__global__ void rows(const float *A, const float *B, float *C, int n) {
  __shared__ float b[rows_k][rows_block];
  for (int k = 0; k < rows_k; ++k) {
    b[k][threadIdx.x] = B[k * n + blockIdx.x * rows_block + threadIdx.x];
  }
  __syncthreads();
  const float *row = A;
  float sum[rows_per_thread] = {};
  for (int k = 0; k < rows_k; ++k) {
    const float b_fragment = b[k][threadIdx.x];
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i)
      sum[i] += row[i * rows_k + k] * b_fragment + b_fragment;
  }
  for (int i = 0; i < rows_per_thread; ++i) {
    C[i * n + blockIdx.x * rows_block + threadIdx.x] = sum[i];
  }
}
