// label: slices/k0 stages 3 async
// A loop inside a loop: the next run of the inner one must wait for the last step's readers. The
// computation uses the counter, the loads fixed inner loops.
#include <cuda_runtime.h>

constexpr int slices_tile = 16;
constexpr int slices_rows = 4;
constexpr int slices_threads = slices_tile * slices_tile / slices_rows;

struct SliceTiles {
  float w[slices_tile][slices_tile];
  float x[slices_tile][slices_tile];
};

__global__ void slices(const float *W, const float *X, float *Y, int d) {
  __shared__ SliceTiles tiles;
  const int x = threadIdx.x % slices_tile;
  const int y = threadIdx.x / slices_tile * slices_rows;
  const int row = blockIdx.x * slices_tile + y;

  for (int col = x; col - x < d; col += slices_tile) {
    float sum[slices_rows] = {};
    for (int k0 = 0; k0 < d; k0 += slices_tile) {
      for (int j = 0; j < slices_rows; ++j) {
        tiles.w[y + j][x] = row + j < d && k0 + x < d ? W[(row + j) * d + k0 + x] : 0.0f;
        tiles.x[y + j][x] = k0 + y + j < d && col < d ? X[(k0 + y + j) * d + col] : 0.0f;
      }
      __syncthreads();
      for (int k = 0; k < slices_tile && k0 + k < d; ++k) {
        for (int j = 0; j < slices_rows; ++j) {
          sum[j] = fmaf(tiles.w[y + j][k], tiles.x[k][x], sum[j]);
        }
      }
      __syncthreads();
    }
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
