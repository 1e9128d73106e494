// There is nothing to test in the loop, and one test around it.
#include <cuda_runtime.h>

constexpr int block_n = 64;

__global__ void gemm(const float *W, const float *X, float *Y, int d) {
  const int row = blockIdx.y;
  const int col = blockIdx.x * block_n + threadIdx.x;
  if (col < d) {
    float sum = 0.0f;
    for (int k = 0; k < d; ++k) {
      sum += W[row * d + k] * X[k * d + col];
    }
    Y[row * d + col] = sum;
  }
}

extern "C" cudaError_t lora(const float *W, const float *X, float *Y, int d, void *workspace,
                            cudaStream_t stream) {
  gemm<<<dim3((d + block_n - 1) / block_n, d), block_n, 0, stream>>>(W, X, Y, d);
  return cudaGetLastError();
}
