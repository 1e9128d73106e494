// label: pack/fold inline

#include <cuda_runtime.h>

constexpr int rank = 3;
constexpr int pack_threads = 32;
constexpr int pack_chunk = 4;

// An element of folded, computed where it is needed.
__device__ __forceinline__ float folded_at(const float *B, const float (&A_fragment)[rank], int col,
                                           float old) {
  float fragment[rank];
  for (int k = 0; k < rank; ++k) {
    fragment[k] = B[col * rank + k];
  }
  float sum = 0.0f;
  for (int k = 0; k < rank; ++k) {
    sum += A_fragment[k] * fragment[k];
  }
  return old + sum;
}

// Leaves every chunk of a row backwards.
__global__ void pack(const float *A, const float *B, const float *W, float *Y, int d) {
  const int row = blockIdx.y;
  const int first = (blockIdx.x * pack_threads + threadIdx.x) * pack_chunk;
  float values[pack_chunk];
#pragma unroll
  for (int i = 0; i < pack_chunk; ++i) {
    values[i] = first + i < d ? W[row * d + first + i] : 0.0f;
  }
  {
    float A_fragment[rank];
    for (int k = 0; k < rank; ++k) {
      A_fragment[k] = A[row * rank + k];
    }
    if (first + (pack_chunk - 1) < d) {
#pragma unroll
      for (int i = 0; i < pack_chunk; ++i) {
        values[i] = folded_at(B, A_fragment, first + i, values[i]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < pack_chunk; ++i) {
        if (first + i < d) {
          values[i] = folded_at(B, A_fragment, first + i, values[i]);
        }
      }
    }
  }
  for (int i = 0; i < pack_chunk; ++i) {
    if (first + pack_chunk - 1 - i < d) {
      Y[row * d + first + pack_chunk - 1 - i] = values[i];
    }
  }
}

extern "C" size_t product_workspace(int d) { return 0; }

extern "C" cudaError_t product(const float *W, const float *A, const float *B, float *Y, int d,
                               void *workspace, cudaStream_t stream) {
  pack<<<dim3((d + pack_threads * pack_chunk - 1) / (pack_threads * pack_chunk), d), pack_threads,
         0, stream>>>(A, B, W, Y, d);
  return cudaGetLastError();
}
