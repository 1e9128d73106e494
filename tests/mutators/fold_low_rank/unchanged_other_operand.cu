// The projection is of W, so that the low-rank term is not one of a product with X.
// Y = W X + A (B^T X), the plainest way: one thread per element, three kernels.
// W, X, Y: d x d; A, B: d x rank; T = B^T X: rank x d, the only region of the workspace.
// All row-major float32.

#include <cuda_runtime.h>

constexpr int rank = 16;
constexpr int project_threads = 32;
constexpr int multiply_threads = 32;
constexpr int update_threads = 32;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

__global__ void project(const float *B, const float *W, float *T, int d) {
  const int col = blockIdx.x * project_threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    float sum = 0.0f;
    for (int k = 0; k < d; ++k) {
      sum += B[k * rank + row] * W[k * d + col];
    }
    T[row * d + col] = sum;
  }
}

__global__ void multiply(const float *W, const float *X, float *Y, int d) {
  const int col = blockIdx.x * multiply_threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    float sum = 0.0f;
    for (int k = 0; k < d; ++k) {
      sum += W[row * d + k] * X[k * d + col];
    }
    Y[row * d + col] = sum;
  }
}

__global__ void update(const float *A, const float *T, float *Y, int d) {
  const int col = blockIdx.x * update_threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    float sum = 0.0f;
    for (int k = 0; k < rank; ++k) {
      sum += A[row * rank + k] * T[k * d + col];
    }
    Y[row * d + col] += sum;
  }
}

extern "C" size_t lora_workspace(int d, int r) { return sizeof(float) * r * d; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  if (r != rank) {
    return cudaErrorInvalidValue;
  }
  float *T = static_cast<float *>(workspace);
  project<<<dim3(ceil_div(d, project_threads), rank), project_threads, 0, stream>>>(B, W, T, d);
  multiply<<<dim3(ceil_div(d, multiply_threads), d), multiply_threads, 0, stream>>>(W, X, Y, d);
  update<<<dim3(ceil_div(d, update_threads), d), update_threads, 0, stream>>>(A, T, Y, d);
  return cudaGetLastError();
}
