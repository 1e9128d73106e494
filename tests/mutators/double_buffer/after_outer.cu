// label: slices/k0 double buffer
// A loop inside a loop: the next run of the inner one must wait for the last step's readers. The
// computation uses the counter, the loads fixed inner loops.
#include <cuda_runtime.h>

constexpr int slices_tile = 16;
constexpr int slices_rows = 4;
constexpr int slices_threads = slices_tile * slices_tile / slices_rows;

constexpr int slices_stages = 2;
static_assert(slices_stages == 2);

struct SliceTiles {
  float w[slices_stages][slices_tile][slices_tile];
  float x[slices_stages][slices_tile][slices_tile];
};

__global__ void slices(const float *W, const float *X, float *Y, int d) {
  __shared__ SliceTiles tiles;
  const int x = threadIdx.x % slices_tile;
  const int y = threadIdx.x / slices_tile * slices_rows;
  const int row = blockIdx.x * slices_tile + y;

  for (int col = x; col - x < d; col += slices_tile) {
    float sum[slices_rows] = {};
    {
      const int k0 = 0;
      for (int j = 0; j < slices_rows; ++j) {
        tiles.w[0][y + j][x] = row + j < d && k0 + x < d ? W[(row + j) * d + k0 + x] : 0.0f;
        tiles.x[0][y + j][x] = k0 + y + j < d && col < d ? X[(k0 + y + j) * d + col] : 0.0f;
      }
    }
    __syncthreads();
    int stage = 0;
    for (int k0 = 0; k0 < d - slices_tile; k0 += slices_tile) {
      const int next_stage = (stage + 1) % slices_stages;
      const int k0_next = k0 + slices_tile;
      float w_next[slices_rows];
      float x_next[slices_rows];
#pragma unroll
      for (int j = 0; j < slices_rows; ++j) {
        w_next[j] = row + j < d && k0_next + x < d ? W[(row + j) * d + k0_next + x] : 0.0f;
        x_next[j] = k0_next + y + j < d && col < d ? X[(k0_next + y + j) * d + col] : 0.0f;
      }
      for (int k = 0; k < slices_tile && k0 + k < d; ++k) {
        for (int j = 0; j < slices_rows; ++j) {
          sum[j] = fmaf(tiles.w[stage][y + j][k], tiles.x[stage][k][x], sum[j]);
        }
      }
#pragma unroll
      for (int j = 0; j < slices_rows; ++j) {
        tiles.w[next_stage][y + j][x] = w_next[j];
        tiles.x[next_stage][y + j][x] = x_next[j];
      }
      __syncthreads();
      stage = next_stage;
    }
    {
      const int k0 = (d - 1) / slices_tile * slices_tile;
      for (int k = 0; k < slices_tile && k0 + k < d; ++k) {
        for (int j = 0; j < slices_rows; ++j) {
          sum[j] = fmaf(tiles.w[stage][y + j][k], tiles.x[stage][k][x], sum[j]);
        }
      }
    }
    __syncthreads();

    for (int j = 0; j < slices_rows; ++j) {
      if (row + j < d && col < d) {
        Y[(row + j) * d + col] = sum[j];
      }
    }
  }
}

extern "C" size_t lora_workspace(int d, int r) { return 0; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  slices<<<(d + slices_tile - 1) / slices_tile, slices_threads, 0, stream>>>(W, X, Y, d);
  return cudaGetLastError();
}
