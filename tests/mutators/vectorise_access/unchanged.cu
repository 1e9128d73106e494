// Nothing consecutive: one element per thread, elements a stride apart, columns dealt out in turn.
#include <cuda_runtime.h>

constexpr int tile_k = 8;
constexpr int tile_n = 32;
constexpr int threads = 32;
constexpr int per_thread = 4;

__global__ void one_each(const float *X, float *Y, int d) {
  const int col = blockIdx.x * threads + threadIdx.x;
  if (col < d) {
    Y[col] = X[col];
  }
}

__global__ void columns(const float *X, float *Y, int d) {
  __shared__ float tile[tile_k][tile_n];
  for (int i = threadIdx.x; i < tile_k * tile_n; i += threads) {
    const int k = i % tile_k;
    const int col = i / tile_k;
    tile[k][col] = col < d ? X[k * d + col] : 0.0f;
  }
  __syncthreads();
  float held[per_thread];
  for (int j = 0; j < per_thread; ++j) {
    held[j] = tile[threadIdx.x % tile_k][threadIdx.x % (tile_n / per_thread) + j * (tile_n / per_thread)];
  }
  for (int j = 0; j < per_thread; ++j) {
    Y[(threadIdx.x + j) * d] = held[j];
  }
}

extern "C" cudaError_t run(const float *X, float *Y, int d, cudaStream_t stream) {
  one_each<<<d, threads, 0, stream>>>(X, Y, d);
  columns<<<1, threads, 0, stream>>>(X, Y, d);
  return cudaGetLastError();
}
