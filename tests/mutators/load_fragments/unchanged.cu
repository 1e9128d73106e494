// Global memory is read, a step's reads may not all happen, the tile changes between them.
#include <cuda_runtime.h>

constexpr int tile_k = 8;
constexpr int tile_n = 4;

__global__ void no_tile(const float *A, const float *B, float *C, int n) {
  float sum[tile_n] = {};
  for (int k = 0; k < tile_k; ++k) {
    for (int j = 0; j < tile_n; ++j) {
      sum[j] += A[k] * B[k * n + j];
    }
  }
  C[threadIdx.x] = sum[0];
}

__global__ void conditional(const float *A, float *C, int n) {
  __shared__ float a[tile_k][tile_n];
  a[threadIdx.x % tile_k][0] = A[threadIdx.x];
  __syncthreads();
  float sum[tile_n] = {};
  for (int k = 0; k < tile_k; ++k) {
    for (int j = 0; j < tile_n; ++j) {
      sum[j] += k + j < n ? a[k][0] : 0.0f;
    }
  }
  C[threadIdx.x] = sum[0];
}

__global__ void changing(const float *A, float *C, int n) {
  __shared__ float a[tile_k][tile_n];
  float sum[tile_n] = {};
  for (int k = 0; k < tile_k; ++k) {
    for (int j = 0; j < tile_n; ++j) {
      sum[j] += a[k][0];
      a[k][j] = A[j];
    }
  }
  C[threadIdx.x] = sum[0];
}

__global__ void no_reuse(const float *A, float *C, int n) {
  __shared__ float a[tile_k][tile_n];
  a[threadIdx.x % tile_k][0] = A[threadIdx.x];
  __syncthreads();
  float sum[tile_n] = {};
  for (int k = 0; k < tile_k; ++k) {
    for (int j = 0; j < tile_n; ++j) {
      sum[j] += a[k][j];
    }
  }
  C[threadIdx.x] = sum[0];
}
