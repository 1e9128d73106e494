// label: gemm/k0 peel edges
#include <cuda_runtime.h>

constexpr int tile_m = 16;
constexpr int tile_n = 32;
constexpr int tile_k = 8;
constexpr int stages = 3;
constexpr int threads = tile_m * tile_n / 4;
static_assert(tile_k * tile_n % (threads * 4) == 0 || tile_k * tile_n < threads * 4);

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

// Y = W X, the next tiles but one on their way while a tile is computed on; one column of a group
// of four per thread. Some threads load nothing.
__global__ void gemm(const float *W, const float *X, float *Y, int d) {
  __shared__ float w_tile[stages][tile_m][tile_k];
  alignas(16) __shared__ float x_tile[stages][tile_k][tile_n];

  const int block_row = blockIdx.y * tile_m;
  const int thread_row = threadIdx.x / (tile_n / 4);
  const int thread_col = threadIdx.x % (tile_n / 4) * 4;

  float sum[4] = {};
  const bool interior = block_row + tile_m <= d && blockIdx.x * tile_n + tile_n <= d &&
                        (stages - 1) * tile_k <= d && d % tile_k == 0 && d % 4 == 0 &&
                        reinterpret_cast<size_t>(X) % sizeof(float4) == 0;
  if (interior) {
    for (int stage = 0; stage < stages - 1; ++stage) {
      const int k0 = stage * tile_k;
      for (int i = threadIdx.x; i < tile_m * tile_k; i += threads) {

        w_tile[stage][i / tile_k][i % tile_k] = W[(block_row + i / tile_k) * d + k0 + i % tile_k];
      }
      const int i = threadIdx.x * 4;
      if (i < tile_k * tile_n) {
        const int col = blockIdx.x * tile_n + i % tile_n;
        for (int j = 0; j < 4; ++j) {
          x_tile[stage][i / tile_n][i % tile_n + j] = X[(k0 + i / tile_n) * d + col + j];
        }
      }
    }
    __syncthreads();
    for (int k0 = 0; k0 < d; k0 += tile_k) {
      const int stage = k0 / tile_k % stages;
      const int next_stage = (stage + stages - 1) % stages;
      const int k0_next = k0 + (stages - 1) * tile_k;
      for (int i = threadIdx.x; i < tile_m * tile_k; i += threads) {
        const bool inside = k0_next < d;
        w_tile[next_stage][i / tile_k][i % tile_k] =
            inside ? W[(block_row + i / tile_k) * d + k0_next + i % tile_k] : 0.0f;
      }
      const int i = threadIdx.x * 4;
      if (i < tile_k * tile_n) {
        const int k = i / tile_n;
        const int col = blockIdx.x * tile_n + i % tile_n;
        if (k0_next < d) {
          *reinterpret_cast<float4 *>(&x_tile[next_stage][k][i % tile_n]) =
              *reinterpret_cast<const float4 *>(&X[(k0_next + k) * d + col]);
        } else {
          for (int j = 0; j < 4; ++j) {
            x_tile[next_stage][k][i % tile_n + j] = 0.0f;
          }
        }
      }
      for (int k = 0; k < tile_k; ++k) {
        for (int j = 0; j < 4; ++j) {
          sum[j] += w_tile[stage][thread_row][k] * x_tile[stage][k][thread_col + j];
        }
      }
      __syncthreads();
    }

    const int row = block_row + thread_row;

    for (int j = 0; j < 4; ++j)
      Y[row * d + blockIdx.x * tile_n + thread_col + j] = sum[j];
  } else {
    for (int stage = 0; stage < stages - 1; ++stage) {
      const int k0 = stage * tile_k;
      for (int i = threadIdx.x; i < tile_m * tile_k; i += threads) {
        const bool inside = block_row + i / tile_k < d && k0 + i % tile_k < d;
        w_tile[stage][i / tile_k][i % tile_k] =
            inside ? W[(block_row + i / tile_k) * d + k0 + i % tile_k] : 0.0f;
      }
      const int i = threadIdx.x * 4;
      if (i < tile_k * tile_n) {
        const int col = blockIdx.x * tile_n + i % tile_n;
        for (int j = 0; j < 4; ++j) {
          x_tile[stage][i / tile_n][i % tile_n + j] =
              d > k0 + i / tile_n && !(col + j >= d) ? X[(k0 + i / tile_n) * d + col + j] : 0.0f;
        }
      }
    }
    __syncthreads();
    for (int k0 = 0; k0 < d; k0 += tile_k) {
      const int stage = k0 / tile_k % stages;
      const int next_stage = (stage + stages - 1) % stages;
      const int k0_next = k0 + (stages - 1) * tile_k;
      for (int i = threadIdx.x; i < tile_m * tile_k; i += threads) {
        const bool inside = block_row + i / tile_k < d && k0_next + i % tile_k < d;
        w_tile[next_stage][i / tile_k][i % tile_k] =
            inside ? W[(block_row + i / tile_k) * d + k0_next + i % tile_k] : 0.0f;
      }
      const int i = threadIdx.x * 4;
      if (i < tile_k * tile_n) {
        const int k = i / tile_n;
        const int col = blockIdx.x * tile_n + i % tile_n;
        if (k0_next + k < d && col + 3 < d &&
            reinterpret_cast<size_t>(&X[(k0_next + k) * d + col]) % sizeof(float4) == 0) {
          *reinterpret_cast<float4 *>(&x_tile[next_stage][k][i % tile_n]) =
              *reinterpret_cast<const float4 *>(&X[(k0_next + k) * d + col]);
        } else {
          for (int j = 0; j < 4; ++j) {
            x_tile[next_stage][k][i % tile_n + j] =
                k0_next + k < d && col + j < d ? X[(k0_next + k) * d + col + j] : 0.0f;
          }
        }
      }
      for (int k = 0; k < tile_k; ++k) {
        for (int j = 0; j < 4; ++j) {
          sum[j] += w_tile[stage][thread_row][k] * x_tile[stage][k][thread_col + j];
        }
      }
      __syncthreads();
    }

    const int row = block_row + thread_row;
    if (row >= d)
      return;
    for (int j = 0; j < 4; ++j)
      if (blockIdx.x * tile_n + thread_col + j < d)
        Y[row * d + blockIdx.x * tile_n + thread_col + j] = sum[j];
  }
}

extern "C" cudaError_t lora(const float *W, const float *X, float *Y, int d, void *workspace,
                            cudaStream_t stream) {
  gemm<<<dim3(ceil_div(d, tile_n), ceil_div(d, tile_m)), threads, 0, stream>>>(W, X, Y, d);
  return cudaGetLastError();
}
