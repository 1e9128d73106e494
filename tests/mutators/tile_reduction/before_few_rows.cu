// label: project/k tile 16x32x64, 2x2 per thread
// T = B^T X has few rows, and B lies column by column for it.

#include <cuda_runtime.h>

constexpr int rank = 16;
constexpr int project_threads = 64;

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

extern "C" cudaError_t product(const float *B, const float *X, float *T, int d, void *workspace,
                               cudaStream_t stream) {
  project<<<dim3((d + project_threads - 1) / project_threads, rank), project_threads>>>(B, X, T, d);
  return cudaGetLastError();
}
