// label: gemm/scaled pitch 4

#include <cuda_runtime.h>

constexpr int scale_threads = 64;
constexpr int gemm_block_m = 16;
constexpr int gemm_block_n = 32;
constexpr int gemm_block_k = 8;
constexpr int gemm_threads = gemm_block_m * gemm_block_n / 4;

__global__ void scale(const float *W, float *scaled, int d, int scaled_pitch) {
  const int col = blockIdx.x * scale_threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    scaled[row * scaled_pitch + col] = 2.0f * W[row * d + col];
  }
}

__global__ void gemm(const float *W, const float *X, float *Y, int d, int scaled_pitch) {
  __shared__ float w[gemm_block_k][gemm_block_m];
  __shared__ float x[gemm_block_k][gemm_block_n];
  const int block_row = blockIdx.y * gemm_block_m;
  const int block_col = blockIdx.x * gemm_block_n;
  const int thread_row = threadIdx.x / (gemm_block_n / 2) * 2;
  const int thread_col = threadIdx.x % (gemm_block_n / 2) * 2;
  float sum[2][2] = {};
  for (int k0 = 0; k0 < d; k0 += gemm_block_k) {
    for (int i = threadIdx.x; i < gemm_block_m * gemm_block_k; i += gemm_threads) {
      const int row = i / gemm_block_k;
      const int k = i % gemm_block_k;
      w[k][row] =
          block_row + row < d && k0 + k < d ? W[(block_row + row) * scaled_pitch + k0 + k] : 0.0f;
    }
    for (int i = threadIdx.x; i < gemm_block_k * gemm_block_n; i += gemm_threads) {
      const int k = i / gemm_block_n;
      const int col = i % gemm_block_n;
      x[k][col] = k0 + k < d && block_col + col < d ? X[(k0 + k) * d + block_col + col] : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < gemm_block_k; ++k) {
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
          sum[i][j] += w[k][thread_row + i] * x[k][thread_col + j];
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      if (block_row + thread_row + i < d && block_col + thread_col + j < d) {
        Y[(block_row + thread_row + i) * d + block_col + thread_col + j] = sum[i][j];
      }
    }
  }
}

extern "C" size_t product_workspace(int d) { return sizeof(float) * d * ((d + 3) / 4 * 4); }

extern "C" cudaError_t product(const float *W, const float *X, float *Y, int d, void *workspace,
                               cudaStream_t stream) {
  float *scaled = static_cast<float *>(workspace);
  const int scaled_pitch = (d + 3) / 4 * 4;
  scale<<<dim3((d + scale_threads - 1) / scale_threads, d), scale_threads, 0, stream>>>(
      W, scaled, d, scaled_pitch);
  gemm<<<dim3((d + gemm_block_n - 1) / gemm_block_n, (d + gemm_block_m - 1) / gemm_block_m),
         gemm_threads, 0, stream>>>(scaled, X, Y, d, scaled_pitch);
  return cudaGetLastError();
}
