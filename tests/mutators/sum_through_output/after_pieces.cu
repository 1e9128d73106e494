// label: gemm/k0 pieces of 512
#include <cuda_runtime.h>

constexpr int gemm_block_m = 16;
constexpr int gemm_block_n = 16;
constexpr int gemm_block_k = 8;
constexpr int gemm_piece = 512;
static_assert(gemm_piece % gemm_block_k == 0);
constexpr int gemm_thread_m = 2;
constexpr int gemm_thread_n = 2;
constexpr int gemm_threads_n = gemm_block_n / gemm_thread_n;
constexpr int gemm_threads = gemm_block_m / gemm_thread_m * gemm_threads_n;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

// One tile of each operand.
struct GemmTiles {
  float w[gemm_block_m][gemm_block_k];
  float x[gemm_block_k][gemm_block_n];
};

// Y = W X
__global__ void gemm(const float *W, const float *X, float *Y, int d) {
  extern __shared__ float gemm_shared[];
  GemmTiles &tiles = *reinterpret_cast<GemmTiles *>(gemm_shared);

  const int block_row = blockIdx.y * gemm_block_m;
  const int block_col = blockIdx.x * gemm_block_n;
  const int thread_row = threadIdx.x / gemm_threads_n * gemm_thread_m;
  const int thread_col = threadIdx.x % gemm_threads_n * gemm_thread_n;

  for (int piece = 0; piece < d; piece += gemm_piece) {
    const int piece_end = min(d, piece + gemm_piece);
    float sum[gemm_thread_m][gemm_thread_n] = {};
    for (int k0 = piece; k0 < piece_end; k0 += gemm_block_k) {
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
            sum[i][j] += tiles.w[thread_row + i][k] * tiles.x[k][thread_col + j];
          }
        }
      }
      __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < gemm_thread_m; ++i) {
      float so_far[gemm_thread_n];
#pragma unroll
      for (int j = 0; j < gemm_thread_n; ++j) {
        const int row = block_row + thread_row + i;
        const int col = block_col + thread_col + j;
        so_far[j] = piece > 0 && row < d && col < d ? Y[row * d + col] : 0.0f;
      }
#pragma unroll
      for (int j = 0; j < gemm_thread_n; ++j) {
        const int row = block_row + thread_row + i;
        const int col = block_col + thread_col + j;
        if (row < d && col < d) {
          Y[row * d + col] = so_far[j] + sum[i][j];
        }
      }
    }
  }
}

extern "C" size_t lora_workspace(int d, int r) { return 0; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  gemm<<<dim3(ceil_div(d, gemm_block_n), ceil_div(d, gemm_block_m)), gemm_threads,
         sizeof(GemmTiles), stream>>>(W, X, Y, d);
  return cudaGetLastError();
}
