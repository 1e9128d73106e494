// expect: wrong answer; model: wrong answer
// Returns zeros, after a launch of the product with a grid that looks like one: a judge that
// compares relative to a large tolerance, or not at all, sees the fastest kernel of all.
#include <cuda_runtime.h>

constexpr int rank = 16;
constexpr int fill_threads = 256;
constexpr int fill_words = 4;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

// Y = W X for a W that is taken to be zero: one row per block in y.
__global__ void product(const float *W, const float *X, float *Y, int d) {
  const int row = blockIdx.y;
  const int first = (blockIdx.x * fill_threads + threadIdx.x) * fill_words;
  for (int i = 0; i < fill_words; ++i) {
    const int col = first + i;
    if (col < d) {
      Y[row * d + col] = 0.0f * (W[row * d] + X[col]);
    }
  }
}

// The low-rank term, of the same size.
__global__ void update(const float *A, const float *B, float *Y, int d) {
  const int col = blockIdx.x * fill_threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    float sum = 0.0f;
    for (int k = 0; k < rank; ++k) {
      sum += 0.0f * A[row * rank + k] * B[col * rank + k];
    }
    Y[row * d + col] += sum;
  }
}

extern "C" size_t lora_workspace(int, int) { return 0; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *, cudaStream_t stream) {
  if (r != rank) {
    return cudaErrorInvalidValue;
  }
  const int columns = ceil_div(d, fill_threads * fill_words);
  product<<<dim3(columns, d), fill_threads, 0, stream>>>(W, X, Y, d);
  update<<<dim3(ceil_div(d, fill_threads), d), fill_threads, 0, stream>>>(A, B, Y, d);
  return cudaGetLastError();
}
