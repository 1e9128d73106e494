// label: slices/k0 stages 3 async
// A loop inside a loop: the next run of the inner one must wait for the last step's readers. The
// computation uses the counter, the loads fixed inner loops.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

constexpr int slices_tile = 16;
constexpr int slices_rows = 4;
constexpr int slices_threads = slices_tile * slices_tile / slices_rows;

constexpr int slices_stages = 3;
static_assert(slices_stages >= 2);

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
    for (int stage = 0; stage < slices_stages - 1; ++stage) {
      const int k0 = stage * slices_tile;
      if (k0 < d) {
#pragma unroll
        for (int j = 0; j < slices_rows; ++j) {
          __pipeline_memcpy_async(&tiles.w[stage][y + j][x], &W[(row + j) * d + k0 + x],
                                  sizeof(float), row + j < d && k0 + x < d ? 0 : sizeof(float));
          __pipeline_memcpy_async(&tiles.x[stage][y + j][x], &X[(k0 + y + j) * d + col],
                                  sizeof(float), k0 + y + j < d && col < d ? 0 : sizeof(float));
        }
      }
      __pipeline_commit();
    }
    int stage = 0;
    for (int k0 = 0; k0 < d; k0 += slices_tile) {
      __pipeline_wait_prior(slices_stages - 2);
      __syncthreads();
      const int next_stage = stage == 0 ? slices_stages - 1 : stage - 1;
      const int k0_next = k0 + (slices_stages - 1) * slices_tile;
      if (k0_next < d) {
#pragma unroll
        for (int j = 0; j < slices_rows; ++j) {
          __pipeline_memcpy_async(&tiles.w[next_stage][y + j][x], &W[(row + j) * d + k0_next + x],
                                  sizeof(float),
                                  row + j < d && k0_next + x < d ? 0 : sizeof(float));
          __pipeline_memcpy_async(&tiles.x[next_stage][y + j][x], &X[(k0_next + y + j) * d + col],
                                  sizeof(float),
                                  k0_next + y + j < d && col < d ? 0 : sizeof(float));
        }
      }
      __pipeline_commit();
      for (int k = 0; k < slices_tile && k0 + k < d; ++k) {
        for (int j = 0; j < slices_rows; ++j) {
          sum[j] = fmaf(tiles.w[stage][y + j][k], tiles.x[stage][k][x], sum[j]);
        }
      }
      stage = stage == slices_stages - 1 ? 0 : stage + 1;
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
