// The matrix in the workspace is not square: its columns would need another pitch.
#include <cuda_runtime.h>

constexpr int rank = 4;
constexpr int threads = 64;

__global__ void project(const float *B, const float *X, float *T, int d) {
  const int col = blockIdx.x * threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    float sum = 0.0f;
    for (int k = 0; k < d; ++k) {
      sum += B[k * rank + row] * X[k * d + col];
    }
    T[row * d + col] = sum;
  }
}

__global__ void update(const float *A, const float *T, float *Y, int d) {
  const int col = blockIdx.x * threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    float sum = 0.0f;
    for (int k = 0; k < rank; ++k) {
      sum += A[row * rank + k] * T[k * d + col];
    }
    Y[row * d + col] = sum;
  }
}

extern "C" size_t low_rank_workspace(int d) { return sizeof(float) * rank * d; }

extern "C" cudaError_t low_rank(const float *X, const float *A, const float *B, float *Y, int d,
                                void *workspace, cudaStream_t stream) {
  float *T = static_cast<float *>(workspace);
  project<<<dim3((d + threads - 1) / threads, rank), threads, 0, stream>>>(B, X, T, d);
  update<<<dim3((d + threads - 1) / threads, d), threads, 0, stream>>>(A, T, Y, d);
  return cudaGetLastError();
}
