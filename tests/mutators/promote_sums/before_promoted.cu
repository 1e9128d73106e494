// label: gemm/k0 promote every 64
// Y = W X + A (B^T X) with the product W X tiled through shared memory.
// W, X, Y: d x d; A, B: d x rank; T = B^T X: rank x d, the only region of the workspace.
// All row-major float32.

#include <cuda_runtime.h>

constexpr int rank = 16;
constexpr int project_threads = 256;

constexpr int gemm_block_m = 16;
constexpr int gemm_block_n = 16;
constexpr int gemm_block_k = 8;
constexpr int gemm_promotion = 128;
static_assert(gemm_promotion % gemm_block_k == 0);
constexpr int gemm_thread_m = 2;
constexpr int gemm_thread_n = 2;
constexpr int gemm_threads_n = gemm_block_n / gemm_thread_n;
constexpr int gemm_threads = gemm_block_m / gemm_thread_m * gemm_threads_n;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

struct GemmTiles {
  float w[gemm_block_m][gemm_block_k];
  float x[gemm_block_k][gemm_block_n];
};

__global__ void project(const float *B, const float *X, float *T, int d) {
  const int col = blockIdx.x * project_threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    float sum = 0.0f;
    for (int k = 0; k < d; ++k) {
      sum += B[k * rank + row] * X[k * d + col];
    }
    T[row * d + col] = sum;
  }
}

__global__ void gemm(const float *W, const float *X, float *Y, int d, const float *A,
                     const float *T) {
  extern __shared__ float gemm_shared[];
  GemmTiles &tiles = *reinterpret_cast<GemmTiles *>(gemm_shared);

  const int block_row = blockIdx.y * gemm_block_m;
  const int block_col = blockIdx.x * gemm_block_n;
  const int thread_row = threadIdx.x / gemm_threads_n * gemm_thread_m;
  const int thread_col = threadIdx.x % gemm_threads_n * gemm_thread_n;

  float sum[gemm_thread_m][gemm_thread_n] = {};
  float partial[gemm_thread_m][gemm_thread_n] = {};
  for (int k0 = 0; k0 < d; k0 += gemm_block_k) {
    for (int i = threadIdx.x; i < gemm_block_m * gemm_block_k; i += gemm_threads) {
      const int row = i / gemm_block_k;
      const int k = i % gemm_block_k;
      tiles.w[row][k] =
          block_row + row < d && k0 + k < d ? W[(block_row + row) * d + k0 + k] : 0.0f;
    }
    for (int i = threadIdx.x; i < gemm_block_k * gemm_block_n; i += gemm_threads) {
      const int k = i / gemm_block_n;
      const int col = i % gemm_block_n;
      tiles.x[k][col] =
          k0 + k < d && block_col + col < d ? X[(k0 + k) * d + block_col + col] : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < gemm_block_k; ++k) {
      for (int i = 0; i < gemm_thread_m; ++i) {
        for (int j = 0; j < gemm_thread_n; ++j) {
          partial[i][j] += tiles.w[thread_row + i][k] * tiles.x[k][thread_col + j];
        }
      }
    }
    __syncthreads();
    if ((k0 + gemm_block_k) % gemm_promotion == 0 || k0 + gemm_block_k >= d) {
#pragma unroll
      for (int partial_i = 0; partial_i < gemm_thread_m; ++partial_i) {
#pragma unroll
        for (int partial_j = 0; partial_j < gemm_thread_n; ++partial_j) {
          sum[partial_i][partial_j] += partial[partial_i][partial_j];
          partial[partial_i][partial_j] = 0.0f;
        }
      }
    }
  }

  for (int i = 0; i < gemm_thread_m; ++i) {
    for (int j = 0; j < gemm_thread_n; ++j) {
      const int row = block_row + thread_row + i;
      const int col = block_col + thread_col + j;
      if (row < d && col < d) {
        float update_sum = 0.0f;
        for (int k = 0; k < rank; ++k) {
          update_sum += A[row * rank + k] * T[k * d + col];
        }
        Y[row * d + col] = sum[i][j] + update_sum;
      }
    }
  }
}

extern "C" size_t lora_workspace(int d, int r) { return sizeof(float) * r * d; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  if (r != rank) {
    return cudaErrorInvalidValue;
  }
  float *T = static_cast<float *>(workspace);
  project<<<dim3(ceil_div(d, project_threads), rank), project_threads, 0, stream>>>(B, X, T, d);
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(GemmTiles));
  gemm<<<dim3(ceil_div(d, gemm_block_n), ceil_div(d, gemm_block_m)), gemm_threads,
         sizeof(GemmTiles), stream>>>(W, X, Y, d, A, T);
  return cudaGetLastError();
}
