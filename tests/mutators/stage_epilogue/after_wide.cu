// label: gemm/epilogue 16 rows
#include <cuda_runtime.h>

constexpr int gemm_block_m = 32;
constexpr int gemm_block_n = 32;
constexpr int gemm_staged_rows = 16;
constexpr int gemm_staged_pad = 8;
static_assert(gemm_block_m % gemm_staged_rows == 0);
constexpr int gemm_block_k = 8;
constexpr int gemm_thread_m = 2;
constexpr int gemm_thread_n = 8;
constexpr int gemm_threads_n = gemm_block_n / gemm_thread_n;
constexpr int gemm_threads = gemm_block_m / gemm_thread_m * gemm_threads_n;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

// Y = W X
__global__ void gemm(const float *W, const float *X, float *Y, int d) {
  alignas(16) __shared__ float gemm_staged[gemm_staged_rows][gemm_block_n + gemm_staged_pad];

  __shared__ float w[gemm_block_m][gemm_block_k];
  __shared__ float x[gemm_block_k][gemm_block_n];

  const int block_row = blockIdx.y * gemm_block_m;
  const int block_col = blockIdx.x * gemm_block_n;
  const int thread_row = threadIdx.x / gemm_threads_n * gemm_thread_m;
  const int thread_col = threadIdx.x % gemm_threads_n * gemm_thread_n;

  float sum[gemm_thread_m][gemm_thread_n] = {};
  for (int k0 = 0; k0 < d; k0 += gemm_block_k) {
    for (int i = threadIdx.x; i < gemm_block_m * gemm_block_k; i += gemm_threads) {
      const int row = i / gemm_block_k;
      const int k = i % gemm_block_k;
      w[row][k] = block_row + row < d && k0 + k < d ? W[(block_row + row) * d + k0 + k] : 0.0f;
    }
    for (int i = threadIdx.x; i < gemm_block_k * gemm_block_n; i += gemm_threads) {
      const int k = i / gemm_block_n;
      const int col = i % gemm_block_n;
      x[k][col] = k0 + k < d && block_col + col < d ? X[(k0 + k) * d + block_col + col] : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < gemm_block_k; ++k) {
      for (int i = 0; i < gemm_thread_m; ++i) {
        for (int j = 0; j < gemm_thread_n; ++j) {
          sum[i][j] += w[thread_row + i][k] * x[k][thread_col + j];
        }
      }
    }
    __syncthreads();
  }

#pragma unroll 1
  for (int first_row = 0; first_row < gemm_block_m; first_row += gemm_staged_rows) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < gemm_thread_m; ++i) {
#pragma unroll
      for (int j = 0; j < gemm_thread_n; j += 4) {
        const int staged_row = thread_row + i - first_row;
        const int staged_col = thread_col + j;
        if (staged_row >= 0 && staged_row < gemm_staged_rows) {
          *reinterpret_cast<float4 *>(&gemm_staged[staged_row][staged_col]) =
              make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
        }
      }
    }
    __syncthreads();
    for (int staged_element = threadIdx.x * 4; staged_element < gemm_staged_rows * gemm_block_n;
         staged_element += gemm_threads * 4) {
      const int staged_row = staged_element / gemm_block_n;
      const int staged_col = staged_element % gemm_block_n;
      const int row = block_row + first_row + staged_row;
      const int col = block_col + staged_col;
      if (row < d && col + 3 < d &&
          reinterpret_cast<size_t>(&Y[row * d + col]) % sizeof(float4) == 0) {
        *reinterpret_cast<float4 *>(&Y[row * d + col]) =
            *reinterpret_cast<const float4 *>(&gemm_staged[staged_row][staged_col]);
      } else {
        if (row < d && col < d) {
          Y[row * d + col] = gemm_staged[staged_row][staged_col];
        }
        if (row < d && col + 1 < d) {
          Y[row * d + col + 1] = gemm_staged[staged_row][staged_col + 1];
        }
        if (row < d && col + 2 < d) {
          Y[row * d + col + 2] = gemm_staged[staged_row][staged_col + 2];
        }
        if (row < d && col + 3 < d) {
          Y[row * d + col + 3] = gemm_staged[staged_row][staged_col + 3];
        }
      }
    }
  }
}

extern "C" size_t lora_workspace(int d, int r) { return 0; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  gemm<<<dim3(ceil_div(d, gemm_block_n), ceil_div(d, gemm_block_m)), gemm_threads, 0, stream>>>(
      W, X, Y, d);
  return cudaGetLastError();
}
