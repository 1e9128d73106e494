// Two kernels read the matrix.

#include <cuda_runtime.h>

constexpr int rank = 3;
constexpr int fold_threads = 64;
constexpr int fold_rows = 4;
constexpr int pack_threads = 32;
constexpr int pack_chunk = 4;

// Adds a product of rank 3.
__global__ void fold(const float *A, const float *B, const float *W, float *folded, int d) {
  const int col = blockIdx.x * fold_threads + threadIdx.x;
  if (col < d) {
    float fragment[rank];
    for (int k = 0; k < rank; ++k) {
      fragment[k] = B[col * rank + k];
    }
    for (int step = 0; step < fold_rows; ++step) {
      const int row = blockIdx.y * fold_rows + step;
      if (row < d) {
        float sum = 0.0f;
        for (int k = 0; k < rank; ++k) {
          sum += A[row * rank + k] * fragment[k];
        }
        folded[row * d + col] = W[row * d + col] + sum;
      }
    }
  }
}

// Leaves every chunk of a row backwards.
__global__ void pack(const float *matrix, float *Y, int d) {
  const int row = blockIdx.y;
  const int first = (blockIdx.x * pack_threads + threadIdx.x) * pack_chunk;
  float values[pack_chunk];
#pragma unroll
  for (int i = 0; i < pack_chunk; ++i) {
    values[i] = first + i < d ? matrix[row * d + first + i] : 0.0f;
  }
  for (int i = 0; i < pack_chunk; ++i) {
    if (first + pack_chunk - 1 - i < d) {
      Y[row * d + first + pack_chunk - 1 - i] = values[i];
    }
  }
}

extern "C" size_t product_workspace(int d) { return (sizeof(float) * d * d + 127) / 128 * 128; }

extern "C" cudaError_t product(const float *W, const float *A, const float *B, float *Y, int d,
                               void *workspace, cudaStream_t stream) {
  float *folded = static_cast<float *>(workspace);
  fold<<<dim3((d + fold_threads - 1) / fold_threads, (d + fold_rows - 1) / fold_rows),
         fold_threads, 0, stream>>>(A, B, W, folded, d);
  pack<<<dim3((d + pack_threads * pack_chunk - 1) / (pack_threads * pack_chunk), d), pack_threads,
         0, stream>>>(folded, Y, d);
  fold<<<1, 1, 0, stream>>>(folded, B, W, Y, 1);
  return cudaGetLastError();
}
