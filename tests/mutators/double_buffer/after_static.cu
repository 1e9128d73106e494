// label: multiply/t double buffer
// Plain arrays, a leading barrier, counted tiles, loads that do not divide evenly, a number of
// tiles that may be zero, a definition that loads and computation share, unrolled loops.
#include <cuda_runtime.h>

constexpr int multiply_rows = 16;
constexpr int multiply_cols = 16;
constexpr int multiply_depth = 20;
constexpr int multiply_threads = multiply_rows * multiply_cols;

constexpr int multiply_stages = 2;
static_assert(multiply_stages == 2);

constexpr int multiply_w_tile_loads =
    (multiply_rows * multiply_depth + multiply_threads - 1) / multiply_threads;
constexpr int multiply_x_tile_loads = (multiply_depth + multiply_rows - 1) / multiply_rows;

__global__ void multiply(const float *W, const float *X, float *Y, int d) {
  __shared__ float w_tile[multiply_stages][multiply_depth][multiply_rows + 1];
  __shared__ float x_tile[multiply_stages][multiply_depth * multiply_cols];
  const int tid = threadIdx.x;
  const int first_row = blockIdx.y * multiply_rows;
  const int first_col = blockIdx.x * multiply_cols;
  const int tiles = (d + multiply_depth - 1) / multiply_depth;

  float sum = 0.0f;
  if (0 < tiles) {
    __syncthreads();
    {
      const int t = 0;
      const int depth = min(multiply_depth, d - t * multiply_depth);
#pragma unroll 2
      for (int i = tid; i < multiply_rows * multiply_depth; i += multiply_threads) {
        const int row = i / multiply_depth, k = i % multiply_depth;
        float value = 0.0f;
        if (k < depth && first_row + row < d) {
          value = W[(first_row + row) * d + t * multiply_depth + k];
        }
        w_tile[0][k][row] = value;
      }
      for (int k = tid / multiply_cols; k < multiply_depth; k += multiply_rows) {
        const int col = tid % multiply_cols;
        if (k < depth && first_col + col < d)
          x_tile[0][k * multiply_cols + col] = X[(t * multiply_depth + k) * d + first_col + col];
        else
          x_tile[0][k * multiply_cols + col] = 0.0f;
      }
    }
    __syncthreads();
    int stage = 0;
#pragma unroll 1
    for (int t = 0; t < tiles - 1; ++t) {
      const int next_stage = (stage + 1) % multiply_stages;
      const int t_next = t + 1;
      float w_tile_next[multiply_w_tile_loads];
      float x_tile_next[multiply_x_tile_loads];
      float x_tile_next_2[multiply_x_tile_loads];
      {
        const int depth = min(multiply_depth, d - t_next * multiply_depth);
#pragma unroll
        for (int step = 0; step < multiply_w_tile_loads; ++step) {
          const int i = tid + step * multiply_threads;
          if (i < multiply_rows * multiply_depth) {
            const int row = i / multiply_depth, k = i % multiply_depth;
            float value = 0.0f;
            if (k < depth && first_row + row < d) {
              value = W[(first_row + row) * d + t_next * multiply_depth + k];
            }
            w_tile_next[step] = value;
          }
        }
#pragma unroll
        for (int step = 0; step < multiply_x_tile_loads; ++step) {
          const int k = tid / multiply_cols + step * multiply_rows;
          if (k < multiply_depth) {
            const int col = tid % multiply_cols;
            if (k < depth && first_col + col < d) {
              x_tile_next[step] = X[(t_next * multiply_depth + k) * d + first_col + col];
            } else {
              x_tile_next_2[step] = 0.0f;
            }
          }
        }
      }
      {
        const int depth = min(multiply_depth, d - t * multiply_depth);
        const int row = tid / multiply_cols;
#pragma unroll 4
        for (int k = 0; k < depth; ++k) {
          sum += w_tile[stage][k][row] * x_tile[stage][k * multiply_cols + tid % multiply_cols];
        }
      }
      {
        const int depth = min(multiply_depth, d - t_next * multiply_depth);
#pragma unroll
        for (int step = 0; step < multiply_w_tile_loads; ++step) {
          const int i = tid + step * multiply_threads;
          if (i < multiply_rows * multiply_depth) {
            const int row = i / multiply_depth, k = i % multiply_depth;
            w_tile[next_stage][k][row] = w_tile_next[step];
          }
        }
#pragma unroll
        for (int step = 0; step < multiply_x_tile_loads; ++step) {
          const int k = tid / multiply_cols + step * multiply_rows;
          if (k < multiply_depth) {
            const int col = tid % multiply_cols;
            if (k < depth && first_col + col < d) {
              x_tile[next_stage][k * multiply_cols + col] = x_tile_next[step];
            } else {
              x_tile[next_stage][k * multiply_cols + col] = x_tile_next_2[step];
            }
          }
        }
      }
      __syncthreads();
      stage = next_stage;
    }
    {
      const int t = tiles - 1;
      const int depth = min(multiply_depth, d - t * multiply_depth);
      const int row = tid / multiply_cols;
#pragma unroll 4
      for (int k = 0; k < depth; ++k) {
        sum += w_tile[stage][k][row] * x_tile[stage][k * multiply_cols + tid % multiply_cols];
      }
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
