// label: multiply/s tile 32x32x8, 2x2 per thread
// Work after the sum, pragmas, two-dimensional blocks with an early return, definitions in the
// loop, and a bound on the launch.

#include <cuda_runtime.h>

constexpr int rank = 16;

constexpr int multiply_block_m = 32;
constexpr int multiply_block_n = 32;
constexpr int multiply_block_k = 8;
constexpr int multiply_thread_m = 2;
constexpr int multiply_thread_n = 2;
constexpr int multiply_threads_n = multiply_block_n / multiply_thread_n;
constexpr int multiply_threads = multiply_block_m / multiply_thread_m * multiply_threads_n;

struct MultiplyTiles {
  float w[multiply_block_m][multiply_block_k];
  float x[multiply_block_k][multiply_block_n];
};

__global__ void __launch_bounds__(multiply_threads, 2)
    multiply(float *Y, int steps, const float *A, const float *T, const float *X, const float *W,
             int d) {
  extern __shared__ float multiply_shared[];
  MultiplyTiles &tiles = *reinterpret_cast<MultiplyTiles *>(multiply_shared);

  const int block_row = blockIdx.y * multiply_block_m;
  const int block_col = blockIdx.x * multiply_block_n;
  const int thread_row = threadIdx.x / multiply_threads_n * multiply_thread_m;
  const int thread_col = threadIdx.x % multiply_threads_n * multiply_thread_n;

  float sum[multiply_thread_m][multiply_thread_n] = {};
  for (int s0 = 0; s0 < steps; s0 += multiply_block_k) {
    for (int i = threadIdx.x; i < multiply_block_m * multiply_block_k; i += multiply_threads) {
      const int row = i / multiply_block_k;
      const int s = i % multiply_block_k;
      tiles.w[row][s] =
          block_row + row < d && s0 + s < steps ? W[(block_row + row) * steps + s0 + s] : 0.0f;
    }
    for (int i = threadIdx.x; i < multiply_block_k * multiply_block_n; i += multiply_threads) {
      const int s = i / multiply_block_n;
      const int col = i % multiply_block_n;
      tiles.x[s][col] =
          s0 + s < steps && block_col + col < d ? X[(s0 + s) * d + block_col + col] : 0.0f;
    }
    __syncthreads();
#pragma unroll 4
    for (int s = 0; s < multiply_block_k; ++s) {
      for (int i = 0; i < multiply_thread_m; ++i) {
        for (int j = 0; j < multiply_thread_n; ++j) {
          sum[i][j] = tiles.x[s][thread_col + j] * tiles.w[thread_row + i][s] + sum[i][j];
        }
      }
    }
    __syncthreads();
  }

  for (int i = 0; i < multiply_thread_m; ++i) {
    for (int j = 0; j < multiply_thread_n; ++j) {
      const int row = block_row + thread_row + i;
      const int col = block_col + thread_col + j;
      if (row < d && col < d) {
        const int first = row * rank;
        float low = 0.0f;
#pragma unroll
        for (int k = 0; k < rank; ++k) {
          low += A[first + k] * T[k * d + col];
        }
        Y[row * d + col] = sum[i][j] + low;
      }
    }
  }
}

extern "C" cudaError_t product(const float *W, const float *X, const float *A, const float *T,
                               float *Y, int d, void *workspace, cudaStream_t stream) {
  cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       sizeof(MultiplyTiles));
  multiply<<<dim3((d + multiply_block_n - 1) / multiply_block_n,
                  (d + multiply_block_m - 1) / multiply_block_m),
             multiply_threads, sizeof(MultiplyTiles), stream>>>(Y, d, A, T, X, W, d);
  return cudaGetLastError();
}
