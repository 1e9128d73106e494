// What is read may be written by the same launch, or by others; what is written is read again.
#include <cuda_runtime.h>

constexpr int block_n = 32;

__global__ void shift(const float *from, float *to, int d) {
  const int col = blockIdx.x * block_n + threadIdx.x;
  if (col < d) {
    to[col] = from[d + col];
  }
}

__global__ void scale(float *Y, const float *T, int d) {
  const int col = blockIdx.x * block_n + threadIdx.x;
  if (col < d) {
    Y[col] = Y[col] * 2.0f;
    atomicAdd(&Y[col], T[col]);
  }
}

extern "C" size_t lora_workspace(int d, int r) { return sizeof(float) * 2 * d; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  float *T = static_cast<float *>(workspace);
  shift<<<(d + block_n - 1) / block_n, block_n, 0, stream>>>(T, T, d);
  scale<<<(d + block_n - 1) / block_n, block_n, 0, stream>>>(T, T + d, d);
  return cudaGetLastError();
}
