// label: multiply/s tile 32x32x8, 2x2 per thread
// Work after the sum, pragmas, two-dimensional blocks with an early return, definitions in the
// loop, and a bound on the launch.

#include <cuda_runtime.h>

constexpr int rank = 16;
constexpr int threads_x = 16;
constexpr int threads_y = 4;

__global__ void __launch_bounds__(threads_x *threads_y, 2)
    multiply(float *Y, int steps, const float *A, const float *T, const float *X, const float *W,
             int d) {
  const int row = blockIdx.y * threads_y + threadIdx.y;
  const int col = blockIdx.x * threads_x + threadIdx.x;
  if (row >= d || d <= col)
    return;
  const int first = row * rank;
  const int element = row * d + col;
  float sum = 0.0f;
#pragma unroll 4
  for (int s = 0; s < steps; ++s) {
    const int at = row * steps + s;
    sum = X[s * d + col] * W[at] + sum;
  }
  float low = 0.0f;
#pragma unroll
  for (int k = 0; k < rank; ++k) {
    low += A[first + k] * T[k * d + col];
  }
  Y[element] = sum + low;
}

extern "C" cudaError_t product(const float *W, const float *X, const float *A, const float *T,
                               float *Y, int d, void *workspace, cudaStream_t stream) {
  multiply<<<dim3((d + threads_x - 1) / threads_x, (d + threads_y - 1) / threads_y),
             dim3(threads_x, threads_y), 0, stream>>>(Y, d, A, T, X, W, d);
  return cudaGetLastError();
}
