// The results depend on the tile's size.
#include <cuda_runtime.h>

constexpr int threads = 256;

__global__ void scale(const float *a, float *b, int n) {
  const int i = blockIdx.x * threads + threadIdx.x;
  if (i < n) {
    b[i] = a[i] / threads;
  }
}

extern "C" cudaError_t run(const float *a, float *b, int n, void *, cudaStream_t stream) {
  scale<<<(n + threads - 1) / threads, threads, 0, stream>>>(a, b, n);
  return cudaGetLastError();
}
