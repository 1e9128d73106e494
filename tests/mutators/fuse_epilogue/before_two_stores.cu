// label: make/epilogue fuse scale
#include <cuda_runtime.h>

constexpr int threads = 32;
constexpr int pairs = threads * 2;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

__global__ void make(const float *__restrict__ X, float *__restrict__ Y, int n) {
  const unsigned block_col = blockIdx.x * pairs;
  const int S = blockIdx.y;
  float even = X[S];
  float odd = 0.0f;
#pragma unroll 2
  for (int k = 0; k < n; ++k) {
    even += X[k];
    odd += X[k];
  }
  if (n > block_col + threadIdx.x * 2) {
    Y[block_col + threadIdx.x * 2 + (size_t)S * n] = even;
  }
  if (block_col + threadIdx.x * 2 + 1 < n)
    Y[(size_t)S * n + (block_col + threadIdx.x * 2 + 1)] = odd;
}

// Prepares what scale reads.
__global__ void sums(const float *X, float *S, int n) { S[threadIdx.x] = X[threadIdx.x * n]; }

// Removed with its
// comment.
__global__ void scale(const float *__restrict__ S, float *Y, int d, float alpha) {
  const int tid = blockIdx.x * threads + threadIdx.x;
  const int even = blockIdx.y;
  if (tid < d) {
    const float *line = S + even;
    Y[even * d + tid] *= line[0] - alpha;
  }
}

extern "C" void entry(const float *X, float *Y, int d, int n, void *workspace,
                      cudaStream_t stream) {
  float *S = static_cast<float *>(workspace);
  make<<<dim3(ceil_div(d, pairs), d), threads, 0, stream>>>(X, Y, d);
  sums<<<1, threads, 0, stream>>>(X, S, d);
  scale<<<dim3(ceil_div(d, threads), d), threads, 0, stream>>>(S, Y, d, 0.5f);
}
