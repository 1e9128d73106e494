// label: product/k tile 32x32x8, 2x2 per thread
// Y = W^T X^T, elements numbered through, W doubled on the way.

#include <cuda_runtime.h>

constexpr int product_block_m = 32;
constexpr int product_block_n = 32;
constexpr int product_block_k = 8;
constexpr int product_thread_m = 2;
constexpr int product_thread_n = 2;
constexpr int product_threads_n = product_block_n / product_thread_n;
constexpr int product_threads = product_block_m / product_thread_m * product_threads_n;

struct ProductTiles {
  float w[product_block_k][product_block_m];
  float x[product_block_n][product_block_k];
};

__global__ void product(const float *W, const float *X, float *Y, size_t d) {
  extern __shared__ float product_shared[];
  ProductTiles &tiles = *reinterpret_cast<ProductTiles *>(product_shared);

  const size_t block_row = blockIdx.y * product_block_m;
  const int block_col = blockIdx.x * product_block_n;
  const int thread_row = threadIdx.x / product_threads_n * product_thread_m;
  const int thread_col = threadIdx.x % product_threads_n * product_thread_n;

  float sum[product_thread_m][product_thread_n] = {};
  for (size_t k0 = 0; k0 < d; k0 += product_block_k) {
    for (int i = threadIdx.x; i < product_block_k * product_block_m; i += product_threads) {
      const int k = i / product_block_m;
      const int row = i % product_block_m;
      tiles.w[k][row] =
          k0 + k < d && block_row + row < d ? 2.0f * W[(k0 + k) * d + block_row + row] : 0.0f;
    }
    for (int i = threadIdx.x; i < product_block_n * product_block_k; i += product_threads) {
      const int col = i / product_block_k;
      const int k = i % product_block_k;
      tiles.x[col][k] =
          block_col + col < d && k0 + k < d ? X[(block_col + col) * d + k0 + k] : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < product_block_k; ++k) {
      for (int i = 0; i < product_thread_m; ++i) {
        for (int j = 0; j < product_thread_n; ++j) {
          sum[i][j] += tiles.w[k][thread_row + i] * tiles.x[thread_col + j][k];
        }
      }
    }
    __syncthreads();
  }

  for (int i = 0; i < product_thread_m; ++i) {
    for (int j = 0; j < product_thread_n; ++j) {
      const size_t row = block_row + thread_row + i;
      const int col = block_col + thread_col + j;
      if (row < d && col < d) {
        Y[row * d + col] = sum[i][j];
      }
    }
  }
}

extern "C" cudaError_t entry(const float *W, const float *X, float *Y, int d, void *workspace,
                             cudaStream_t stream) {
  cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(ProductTiles));
  product<<<dim3((d + product_block_n - 1) / product_block_n,
                 (d + product_block_m - 1) / product_block_m),
            product_threads, sizeof(ProductTiles)>>>(W, X, Y, d);
  return cudaGetLastError();
}
