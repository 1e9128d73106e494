// label: gemm/k unroll 4
#include <cuda_runtime.h>

constexpr int block_k = 8;
constexpr int thread_n = 4;

__global__ void gemm(const float *A, const float *B, float *C) {
  for (int j = 0; j < thread_n; ++j) {
    float sum = 0.0f;
#pragma unroll 4
    for (int k = 0; k < block_k; ++k) {
      sum += A[threadIdx.x * block_k + k] * B[k * thread_n + j];
    }
    C[threadIdx.x * thread_n + j] = sum;
  }
}
