// label: project/k tile 16x32x64, 2x2 per thread
// T = B^T X has few rows, and B lies column by column for it.

#include <cuda_runtime.h>

constexpr int rank = 16;

constexpr int project_block_m = 16;
constexpr int project_block_n = 32;
constexpr int project_block_k = 64;
constexpr int project_thread_m = 2;
constexpr int project_thread_n = 2;
constexpr int project_threads_n = project_block_n / project_thread_n;
constexpr int project_threads = project_block_m / project_thread_m * project_threads_n;

struct ProjectTiles {
  float b[project_block_k][project_block_m];
  float x[project_block_k][project_block_n];
};

__global__ void project(const float *B, const float *X, float *T, int d) {
  extern __shared__ float project_shared[];
  ProjectTiles &tiles = *reinterpret_cast<ProjectTiles *>(project_shared);

  const int block_row = blockIdx.y * project_block_m;
  const int block_col = blockIdx.x * project_block_n;
  const int thread_row = threadIdx.x / project_threads_n * project_thread_m;
  const int thread_col = threadIdx.x % project_threads_n * project_thread_n;

  float sum[project_thread_m][project_thread_n] = {};
  for (int k0 = 0; k0 < d; k0 += project_block_k) {
    for (int i = threadIdx.x; i < project_block_k * project_block_m; i += project_threads) {
      const int k = i / project_block_m;
      const int row = i % project_block_m;
      tiles.b[k][row] =
          k0 + k < d && block_row + row < rank ? B[(k0 + k) * rank + block_row + row] : 0.0f;
    }
    for (int i = threadIdx.x; i < project_block_k * project_block_n; i += project_threads) {
      const int k = i / project_block_n;
      const int col = i % project_block_n;
      tiles.x[k][col] =
          k0 + k < d && block_col + col < d ? X[(k0 + k) * d + block_col + col] : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < project_block_k; ++k) {
      for (int i = 0; i < project_thread_m; ++i) {
        for (int j = 0; j < project_thread_n; ++j) {
          sum[i][j] += tiles.b[k][thread_row + i] * tiles.x[k][thread_col + j];
        }
      }
    }
    __syncthreads();
  }

  for (int i = 0; i < project_thread_m; ++i) {
    for (int j = 0; j < project_thread_n; ++j) {
      const int row = block_row + thread_row + i;
      const int col = block_col + thread_col + j;
      if (row < rank && col < d) {
        T[row * d + col] = sum[i][j];
      }
    }
  }
}

extern "C" cudaError_t product(const float *B, const float *X, float *T, int d, void *workspace,
                               cudaStream_t stream) {
  cudaFuncSetAttribute(project, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(ProjectTiles));
  project<<<dim3((d + project_block_n - 1) / project_block_n,
                 (rank + project_block_m - 1) / project_block_m),
            project_threads, sizeof(ProjectTiles)>>>(B, X, T, d);
  return cudaGetLastError();
}
