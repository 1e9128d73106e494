// label: multiply/w_tile pad 4
// Extents and a padding of its own without a struct, and a padding that was there before.
#include <cuda_runtime.h>

constexpr int multiply_rows = 16;
constexpr int multiply_cols = 16;
constexpr int multiply_depth = 20;
constexpr int multiply_w_tile_pad = 4;
constexpr int multiply_threads = multiply_rows * multiply_cols;

__global__ void multiply(const float *W, const float *X, float *Y, int d) {
  __shared__ float w_tile[multiply_depth][multiply_rows + multiply_w_tile_pad];
  __shared__ float x_tile[multiply_depth * multiply_cols];
  const int tid = threadIdx.x;
  const int first_row = blockIdx.y * multiply_rows;
  const int first_col = blockIdx.x * multiply_cols;
  const int tiles = (d + multiply_depth - 1) / multiply_depth;

  float sum = 0.0f;
#pragma unroll 1
  for (int t = 0; t < tiles; ++t) {
    const int depth = min(multiply_depth, d - t * multiply_depth);
    __syncthreads();
#pragma unroll 2
    for (int i = tid; i < multiply_rows * multiply_depth; i += multiply_threads) {
      const int row = i / multiply_depth, k = i % multiply_depth;
      float value = 0.0f;
      if (k < depth && first_row + row < d) {
        value = W[(first_row + row) * d + t * multiply_depth + k];
      }
      w_tile[k][row] = value;
    }
    for (int k = tid / multiply_cols; k < multiply_depth; k += multiply_rows) {
      const int col = tid % multiply_cols;
      if (k < depth && first_col + col < d)
        x_tile[k * multiply_cols + col] = X[(t * multiply_depth + k) * d + first_col + col];
      else
        x_tile[k * multiply_cols + col] = 0.0f;
    }
    __syncthreads();
    const int row = tid / multiply_cols;
#pragma unroll 4
    for (int k = 0; k < depth; ++k) {
      sum += w_tile[k][row] * x_tile[k * multiply_cols + tid % multiply_cols];
    }
  }

  const int row = first_row + tid / multiply_cols;
  const int col = first_col + tid % multiply_cols;
  if (row < d && col < d) {
    Y[row * d + col] = sum;
  }
}

extern "C" size_t lora_workspace(int d, int r) { return 0; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  multiply<<<dim3((d + multiply_cols - 1) / multiply_cols, (d + multiply_rows - 1) / multiply_rows),
             multiply_threads, 0, stream>>>(W, X, Y, d);
  return cudaGetLastError();
}
