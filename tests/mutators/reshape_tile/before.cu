// label: product/tile_k 16
// One-dimensional threads, tiles in static shared memory, and an early `continue`.
#include <cuda_runtime.h>

constexpr int tile = 32;
constexpr int tile_k = 8;
constexpr int rows = 4;
constexpr int threads = tile / rows * tile;
static_assert(tile_k <= 32);

constexpr int blocks(int n) { return (n + tile - 1) / tile; }

__device__ float element(const float *matrix, int row, int col, int n) {
  return row < n && col < n ? matrix[row * n + col] : 0.0f;
}

__global__ void product(const float *a, const float *b, float *c, int n) {
  __shared__ float left[tile][tile_k];
  __shared__ float right[tile_k][tile];
  const int top = blockIdx.y * tile;
  const int start = blockIdx.x * tile;
  const int col = threadIdx.x % tile;
  const int row = threadIdx.x / tile * rows;
  float sums[rows] = {};
  for (int k0 = 0; k0 < n; k0 += tile_k) {
    for (int i = threadIdx.x; i < tile * tile_k; i += threads) {
      left[i / tile_k][i % tile_k] = element(a, top + i / tile_k, k0 + i % tile_k, n);
      right[i / tile][i % tile] = element(b, k0 + i / tile, start + i % tile, n);
    }
    __syncthreads();
    for (int i = 0; i < rows; ++i) {
      for (int k = 0; k < tile_k; ++k) {
        sums[i] += left[row + i][k] * right[k][col];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < rows; ++i) {
    if (top + row + i >= n || start + col >= n) {
      continue;
    }
    c[(top + row + i) * n + start + col] = sums[i];
  }
}

extern "C" cudaError_t run(const float *a, const float *b, float *c, int n, void *,
                           cudaStream_t stream) {
  product<<<dim3(blocks(n), blocks(n)), threads, 0, stream>>>(a, b, c, n);
  return cudaGetLastError();
}
