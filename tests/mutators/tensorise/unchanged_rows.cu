// A thread has one row, and mma.sync has two.
#include <cuda_runtime.h>

constexpr int block_m = 32;
constexpr int block_n = 32;
constexpr int block_k = 32;
constexpr int thread_m = 1;
constexpr int thread_n = 4;
constexpr int warps_m = block_m / (8 * thread_m);
constexpr int warps_n = block_n / (4 * thread_n);
constexpr int threads = warps_m * warps_n * 32;

__global__ void multiply(const float *W, const float *X, float *Y, int d) {
  __shared__ float w[block_m][block_k];
  __shared__ float x[block_k][block_n];
  const int block_row = blockIdx.y * block_m;
  const int block_col = blockIdx.x * block_n;
  const int warp = threadIdx.x / 32;
  const int thread_row = warp / warps_n * (8 * thread_m) + threadIdx.x % 32 / 4;
  const int thread_col = warp % warps_n * (4 * thread_n) + threadIdx.x % 4 * 2;
  float sum[thread_m][thread_n] = {};
  for (int k0 = 0; k0 < d; k0 += block_k) {
    for (int i = threadIdx.x; i < block_m * block_k; i += threads) {
      const int row = block_row + i / block_k;
      const int col = k0 + i % block_k;
      w[i / block_k][i % block_k] = row < d && col < d ? W[row * d + col] : 0.0f;
    }
    for (int i = threadIdx.x; i < block_k * block_n; i += threads) {
      const int row = k0 + i / block_n;
      const int col = block_col + i % block_n;
      x[i / block_n][i % block_n] = row < d && col < d ? X[row * d + col] : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < block_k; ++k) {
      for (int i = 0; i < thread_m; ++i) {
        for (int j = 0; j < thread_n; ++j) {
          sum[i][j] += w[thread_row + i * 8][k] * x[k][thread_col + j / 2 * 8 + j % 2];
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < thread_m; ++i) {
    for (int j = 0; j < thread_n; ++j) {
      const int row = block_row + thread_row + i * 8;
      const int col = block_col + thread_col + j / 2 * 8 + j % 2;
      if (row < d && col < d) {
        Y[row * d + col] = sum[i][j];
      }
    }
  }
}

extern "C" cudaError_t product(const float *W, const float *X, float *Y, int d,
                               cudaStream_t stream) {
  const int blocks_m = (d + block_m - 1) / block_m;
  const int blocks_n = (d + block_n - 1) / block_n;
  multiply<<<dim3(blocks_n, blocks_m), threads, 0, stream>>>(W, X, Y, d);
  return cudaGetLastError();
}
