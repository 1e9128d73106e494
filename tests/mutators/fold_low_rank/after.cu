// label: multiply/W fold update
// Y = W X + A (B^T X), the plainest way: one thread per element, three kernels.
// W, X, Y: d x d; A, B: d x rank; T = B^T X: rank x d, the only region of the workspace.
// All row-major float32.

#include <cuda_runtime.h>

constexpr int rank = 16;
constexpr int multiply_threads = 32;
constexpr int update_threads = 32;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

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

constexpr int fold_rows = 16;

__global__ void fold(const float *A, const float *__restrict__ B, const float *__restrict__ W,
                     float *__restrict__ folded, int d) {
  const int col = blockIdx.x * update_threads + threadIdx.x;
  if (col < d) {
    float fold_fragment[rank];
    for (int k = 0; k < rank; ++k)
      fold_fragment[k] = B[col * rank + k];
    for (int fold_row = 0; fold_row < fold_rows; ++fold_row) {
      const int row = blockIdx.y * fold_rows + fold_row;
      if (row < d) {
        float sum = 0.0f;
        for (int k = 0; k < rank; ++k) {
          sum += A[row * rank + k] * fold_fragment[k];
        }
        folded[row * d + col] = W[row * d + col] + sum;
      }
    }
  }
}

extern "C" size_t lora_workspace(int d, int r) { return sizeof(float) * d * d; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  if (r != rank) {
    return cudaErrorInvalidValue;
  }
  float *folded = static_cast<float *>(workspace);
  fold<<<dim3(ceil_div(d, update_threads), (d + fold_rows - 1) / fold_rows), update_threads, 0,
         stream>>>(A, B, W, folded, d);
  multiply<<<dim3(ceil_div(d, multiply_threads), d), multiply_threads, 0, stream>>>(folded, X, Y,
                                                                                    d);
  return cudaGetLastError();
}
