// a sum that starts with something else than zero, one that depends on the thread, and a tile

#include <cuda_runtime.h>

constexpr int threads = 256;

__global__ void biased(const float *W, const float *X, const float *bias, float *Y, int d) {
  const int col = blockIdx.x * threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    float sum = bias[col];
    for (int k = 0; k < d; ++k) {
      sum += W[row * d + k] * X[k * d + col];
    }
    Y[row * d + col] = sum;
  }
}

__global__ void by_thread(const float *W, const float *X, float *Y, int d) {
  const int col = blockIdx.x * threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    float sum = 0.0f;
    for (int k = 0; k < d; ++k) {
      sum += W[row * d + k] * X[k * d + col];
    }
    Y[row * d + col] = sum + threadIdx.x;
  }
}

__global__ void tiled(const float *W, const float *X, float *Y, int d) {
  __shared__ float w[threads];
  const int col = blockIdx.x * threads + threadIdx.x;
  const int row = blockIdx.y;
  float sum = 0.0f;
  for (int k0 = 0; k0 < d; k0 += threads) {
    w[threadIdx.x] = k0 + threadIdx.x < d ? W[row * d + k0 + threadIdx.x] : 0.0f;
    __syncthreads();
    for (int k = 0; k < threads && k0 + k < d; ++k) {
      sum += col < d ? w[k] * X[(k0 + k) * d + col] : 0.0f;
    }
    __syncthreads();
  }
  if (col < d) {
    Y[row * d + col] = sum;
  }
}

extern "C" cudaError_t entry(const float *W, const float *X, const float *bias, float *Y, float *Z,
                             float *V, int d, void *workspace, cudaStream_t stream) {
  const dim3 grid((d + threads - 1) / threads, d);
  biased<<<grid, threads, 0, stream>>>(W, X, bias, Y, d);
  by_thread<<<grid, threads, 0, stream>>>(W, X, Z, d);
  tiled<<<grid, threads, 0, stream>>>(W, X, V, d);
  return cudaGetLastError();
}
