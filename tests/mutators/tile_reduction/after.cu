// label: multiply/k tile 64x64x8, 4x4 per thread

#include <cuda_runtime.h>

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

constexpr int multiply_block_m = 64;
constexpr int multiply_block_n = 64;
constexpr int multiply_block_k = 8;
constexpr int multiply_thread_m = 4;
constexpr int multiply_thread_n = 4;
constexpr int multiply_threads_n = multiply_block_n / multiply_thread_n;
constexpr int multiply_threads = multiply_block_m / multiply_thread_m * multiply_threads_n;

struct MultiplyTiles {
  float w[multiply_block_m][multiply_block_k];
  float x[multiply_block_k][multiply_block_n];
};

// Y = W X, one element per thread.
__global__ void multiply(const float *W, const float *X, float *Y, int d) {
  extern __shared__ float multiply_shared[];
  MultiplyTiles &tiles = *reinterpret_cast<MultiplyTiles *>(multiply_shared);

  const int block_row = blockIdx.y * multiply_block_m;
  const int block_col = blockIdx.x * multiply_block_n;
  const int thread_row = threadIdx.x / multiply_threads_n * multiply_thread_m;
  const int thread_col = threadIdx.x % multiply_threads_n * multiply_thread_n;

  float sum[multiply_thread_m][multiply_thread_n] = {};
  for (int k0 = 0; k0 < d; k0 += multiply_block_k) {
    for (int i = threadIdx.x; i < multiply_block_m * multiply_block_k; i += multiply_threads) {
      const int row = i / multiply_block_k;
      const int k = i % multiply_block_k;
      tiles.w[row][k] =
          block_row + row < d && k0 + k < d ? W[(block_row + row) * d + k0 + k] : 0.0f;
    }
    for (int i = threadIdx.x; i < multiply_block_k * multiply_block_n; i += multiply_threads) {
      const int k = i / multiply_block_n;
      const int col = i % multiply_block_n;
      tiles.x[k][col] =
          k0 + k < d && block_col + col < d ? X[(k0 + k) * d + block_col + col] : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < multiply_block_k; ++k) {
      for (int i = 0; i < multiply_thread_m; ++i) {
        for (int j = 0; j < multiply_thread_n; ++j) {
          sum[i][j] += tiles.w[thread_row + i][k] * tiles.x[k][thread_col + j];
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
        Y[row * d + col] = sum[i][j];
      }
    }
  }
}

extern "C" cudaError_t product(const float *W, const float *X, float *Y, int d, void *workspace,
                               cudaStream_t stream) {
  cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       sizeof(MultiplyTiles));
  multiply<<<dim3(ceil_div(d, multiply_block_n), ceil_div(d, multiply_block_m)), multiply_threads,
             sizeof(MultiplyTiles), stream>>>(W, X, Y, d);
  return cudaGetLastError();
}
