// Every thread loads exactly one element of each tile and stores four: right at one size only.
#include <cuda_runtime.h>

constexpr int tile = 32;
constexpr int tile_k = 8;
constexpr int threads = 256;

__global__ void product(const float *a, const float *b, float *c, int n) {
  __shared__ float left[tile][tile_k];
  __shared__ float right[tile_k][tile];
  const int t = threadIdx.x;
  const int top = blockIdx.y * tile;
  const int start = blockIdx.x * tile;
  float sums[4] = {};
  for (int k0 = 0; k0 < n; k0 += tile_k) {
    const int row = top + t / tile_k;
    const int col = start + t % tile;
    left[t / tile_k][t % tile_k] =
        row < n && k0 + t % tile_k < n ? a[row * n + k0 + t % tile_k] : 0.0f;
    right[t / tile][t % tile] = k0 + t / tile < n && col < n ? b[(k0 + t / tile) * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k < tile_k; ++k) {
        sums[i] += left[t / tile * 4 + i][k] * right[k][t % tile];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    const int row = top + t / tile * 4 + i;
    const int col = start + t % tile;
    if (row < n && col < n) {
      c[row * n + col] = sums[i];
    }
  }
}

extern "C" cudaError_t run(const float *a, const float *b, float *c, int n, void *,
                           cudaStream_t stream) {
  const int blocks = (n + tile - 1) / tile;
  product<<<dim3(blocks, blocks), threads, 0, stream>>>(a, b, c, n);
  return cudaGetLastError();
}
