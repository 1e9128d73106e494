// `rank` is the extent of an array, but the problem's: with another value other elements are written.
#include <cuda_runtime.h>

constexpr int rank = 16;

__global__ void project(const float *a, float *t, int n) {
  float sums[rank] = {};
  const int col = blockIdx.x * 64 + threadIdx.x;
  if (col < n) {
    for (int row = 0; row < n; ++row) {
      for (int i = 0; i < rank; ++i) {
        sums[i] += a[row * n + col];
      }
    }
    for (int i = 0; i < rank; ++i) {
      t[i * n + col] = sums[i];
    }
  }
}

extern "C" cudaError_t run(const float *a, float *t, int n, int r, void *, cudaStream_t stream) {
  project<<<(n + 63) / 64, 64, 0, stream>>>(a, t, n);
  return cudaGetLastError();
}
