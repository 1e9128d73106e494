// label: gemm/k0 stages 3 async x
// One tile is transposed on the way: by vectors into registers, and from there to its place.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

constexpr int rank = 16;
constexpr int project_threads = 256;
constexpr int update_threads = 256;

constexpr int gemm_block_m = 64;
constexpr int gemm_block_n = 64;
constexpr int gemm_block_k = 8;
constexpr int gemm_thread_m = 4;
constexpr int gemm_thread_n = 4;
constexpr int gemm_threads_n = gemm_block_n / gemm_thread_n;
constexpr int gemm_threads = gemm_block_m / gemm_thread_m * gemm_threads_n;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

constexpr int gemm_stages = 3;
static_assert(gemm_stages >= 2);

struct GemmTiles {
  float w[gemm_stages][gemm_block_k][gemm_block_m];
  alignas(16) float x[gemm_stages][gemm_block_k][gemm_block_n];
};

__global__ void project(const float *B, const float *X, float *T, int d) {
  const int col = blockIdx.x * project_threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    float sum = 0.0f;
    for (int k = 0; k < d; ++k) {
      sum += B[k * rank + row] * X[k * d + col];
    }
    T[row * d + col] = sum;
  }
}

constexpr int gemm_w_loads =
    (gemm_block_m * gemm_block_k + (gemm_threads * 4) - 1) / (gemm_threads * 4);
constexpr int gemm_x_loads =
    (gemm_block_k * gemm_block_n + (gemm_threads * 4) - 1) / (gemm_threads * 4);

__global__ void gemm(const float *W, const float *X, float *Y, int d) {
  alignas(16) extern __shared__ float gemm_shared[];
  GemmTiles &tiles = *reinterpret_cast<GemmTiles *>(gemm_shared);

  const int block_row = blockIdx.y * gemm_block_m;
  const int block_col = blockIdx.x * gemm_block_n;
  const int thread_row = threadIdx.x / gemm_threads_n * gemm_thread_m;
  const int thread_col = threadIdx.x % gemm_threads_n * gemm_thread_n;

  float sum[gemm_thread_m][gemm_thread_n] = {};
  static_assert(sizeof(GemmTiles::w[0]) % 16 == 0);
  static_assert(sizeof(GemmTiles::x[0]) % 16 == 0);
  for (int stage = 0; stage < gemm_stages - 1; ++stage) {
    const int k0 = stage * gemm_block_k;
    if (k0 < d) {
#pragma unroll
      for (int step = 0; step < gemm_x_loads; ++step) {
        const int i = threadIdx.x * 4 + step * (gemm_threads * 4);
        if (i < gemm_block_k * gemm_block_n) {
          const int k = i / gemm_block_n;
          const int col = i % gemm_block_n;
          if (k0 + k < d && block_col + col + 3 < d &&
              reinterpret_cast<size_t>(&X[(k0 + k) * d + block_col + col]) % sizeof(float4) == 0) {
            __pipeline_memcpy_async(&tiles.x[stage][k][col], &X[(k0 + k) * d + block_col + col],
                                    sizeof(float4));
          } else {
            __pipeline_memcpy_async(&tiles.x[stage][k][col], &X[(k0 + k) * d + block_col + col],
                                    sizeof(float),
                                    k0 + k < d && block_col + col < d ? 0 : sizeof(float));
            __pipeline_memcpy_async(&tiles.x[stage][k][col + 1],
                                    &X[(k0 + k) * d + block_col + col + 1], sizeof(float),
                                    k0 + k < d && block_col + col + 1 < d ? 0 : sizeof(float));
            __pipeline_memcpy_async(&tiles.x[stage][k][col + 2],
                                    &X[(k0 + k) * d + block_col + col + 2], sizeof(float),
                                    k0 + k < d && block_col + col + 2 < d ? 0 : sizeof(float));
            __pipeline_memcpy_async(&tiles.x[stage][k][col + 3],
                                    &X[(k0 + k) * d + block_col + col + 3], sizeof(float),
                                    k0 + k < d && block_col + col + 3 < d ? 0 : sizeof(float));
          }
        }
      }
#pragma unroll
      for (int step = 0; step < gemm_w_loads; ++step) {
        const int i = threadIdx.x * 4 + step * (gemm_threads * 4);
        if (i < gemm_block_m * gemm_block_k) {
          const int row = i / gemm_block_k;
          const int k = i % gemm_block_k;
          const float4 w_vector =
              block_row + row < d && k0 + k + 3 < d &&
                      reinterpret_cast<size_t>(&W[(block_row + row) * d + k0 + k]) %
                              sizeof(float4) ==
                          0
                  ? *reinterpret_cast<const float4 *>(&W[(block_row + row) * d + k0 + k])
                  : make_float4(block_row + row < d && k0 + k < d
                                    ? W[(block_row + row) * d + k0 + k]
                                    : 0.0f,
                                block_row + row < d && k0 + k + 1 < d
                                    ? W[(block_row + row) * d + k0 + k + 1]
                                    : 0.0f,
                                block_row + row < d && k0 + k + 2 < d
                                    ? W[(block_row + row) * d + k0 + k + 2]
                                    : 0.0f,
                                block_row + row < d && k0 + k + 3 < d
                                    ? W[(block_row + row) * d + k0 + k + 3]
                                    : 0.0f);
          tiles.w[stage][k][row] = w_vector.x;
          tiles.w[stage][k + 1][row] = w_vector.y;
          tiles.w[stage][k + 2][row] = w_vector.z;
          tiles.w[stage][k + 3][row] = w_vector.w;
        }
      }
    }
    __pipeline_commit();
  }
  int stage = 0;
  for (int k0 = 0; k0 < d; k0 += gemm_block_k) {
    __pipeline_wait_prior(gemm_stages - 2);
    __syncthreads();
    const int next_stage = stage == 0 ? gemm_stages - 1 : stage - 1;
    const int k0_next = k0 + (gemm_stages - 1) * gemm_block_k;
    float w_next[gemm_w_loads];
    float w_next_2[gemm_w_loads];
    float w_next_3[gemm_w_loads];
    float w_next_4[gemm_w_loads];
    if (k0_next < d) {
#pragma unroll
      for (int step = 0; step < gemm_w_loads; ++step) {
        const int i = threadIdx.x * 4 + step * (gemm_threads * 4);
        if (i < gemm_block_m * gemm_block_k) {
          const int row = i / gemm_block_k;
          const int k = i % gemm_block_k;
          const float4 w_vector =
              block_row + row < d && k0_next + k + 3 < d &&
                      reinterpret_cast<size_t>(&W[(block_row + row) * d + k0_next + k]) %
                              sizeof(float4) ==
                          0
                  ? *reinterpret_cast<const float4 *>(&W[(block_row + row) * d + k0_next + k])
                  : make_float4(block_row + row < d && k0_next + k < d
                                    ? W[(block_row + row) * d + k0_next + k]
                                    : 0.0f,
                                block_row + row < d && k0_next + k + 1 < d
                                    ? W[(block_row + row) * d + k0_next + k + 1]
                                    : 0.0f,
                                block_row + row < d && k0_next + k + 2 < d
                                    ? W[(block_row + row) * d + k0_next + k + 2]
                                    : 0.0f,
                                block_row + row < d && k0_next + k + 3 < d
                                    ? W[(block_row + row) * d + k0_next + k + 3]
                                    : 0.0f);
          w_next[step] = w_vector.x;
          w_next_2[step] = w_vector.y;
          w_next_3[step] = w_vector.z;
          w_next_4[step] = w_vector.w;
        }
      }
#pragma unroll
      for (int step = 0; step < gemm_x_loads; ++step) {
        const int i = threadIdx.x * 4 + step * (gemm_threads * 4);
        if (i < gemm_block_k * gemm_block_n) {
          const int k = i / gemm_block_n;
          const int col = i % gemm_block_n;
          if (k0_next + k < d && block_col + col + 3 < d &&
              reinterpret_cast<size_t>(&X[(k0_next + k) * d + block_col + col]) % sizeof(float4) ==
                  0) {
            __pipeline_memcpy_async(&tiles.x[next_stage][k][col],
                                    &X[(k0_next + k) * d + block_col + col], sizeof(float4));
          } else {
            __pipeline_memcpy_async(&tiles.x[next_stage][k][col],
                                    &X[(k0_next + k) * d + block_col + col], sizeof(float),
                                    k0_next + k < d && block_col + col < d ? 0 : sizeof(float));
            __pipeline_memcpy_async(&tiles.x[next_stage][k][col + 1],
                                    &X[(k0_next + k) * d + block_col + col + 1], sizeof(float),
                                    k0_next + k < d && block_col + col + 1 < d ? 0 : sizeof(float));
            __pipeline_memcpy_async(&tiles.x[next_stage][k][col + 2],
                                    &X[(k0_next + k) * d + block_col + col + 2], sizeof(float),
                                    k0_next + k < d && block_col + col + 2 < d ? 0 : sizeof(float));
            __pipeline_memcpy_async(&tiles.x[next_stage][k][col + 3],
                                    &X[(k0_next + k) * d + block_col + col + 3], sizeof(float),
                                    k0_next + k < d && block_col + col + 3 < d ? 0 : sizeof(float));
          }
        }
      }
    }
    __pipeline_commit();
    for (int k = 0; k < gemm_block_k; ++k) {
      for (int i = 0; i < gemm_thread_m; ++i) {
        for (int j = 0; j < gemm_thread_n; ++j) {
          sum[i][j] += tiles.w[stage][k][thread_row + i] * tiles.x[stage][k][thread_col + j];
        }
      }
    }
    if (k0_next < d) {
#pragma unroll
      for (int step = 0; step < gemm_w_loads; ++step) {
        const int i = threadIdx.x * 4 + step * (gemm_threads * 4);
        if (i < gemm_block_m * gemm_block_k) {
          const int row = i / gemm_block_k;
          const int k = i % gemm_block_k;
          tiles.w[next_stage][k][row] = w_next[step];
          tiles.w[next_stage][k + 1][row] = w_next_2[step];
          tiles.w[next_stage][k + 2][row] = w_next_3[step];
          tiles.w[next_stage][k + 3][row] = w_next_4[step];
        }
      }
    }
    stage = stage == gemm_stages - 1 ? 0 : stage + 1;
  }

  for (int i = 0; i < gemm_thread_m; ++i) {
    for (int j = 0; j < gemm_thread_n; ++j) {
      const int row = block_row + thread_row + i;
      const int col = block_col + thread_col + j;
      if (row < d && col < d) {
        Y[row * d + col] = sum[i][j];
      }
    }
  }
}

__global__ void update(const float *A, const float *T, float *Y, int d) {
  const int col = blockIdx.x * update_threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    float sum = 0.0f;
    for (int k = 0; k < rank; ++k) {
      sum += A[row * rank + k] * T[k * d + col];
    }
    Y[row * d + col] += sum;
  }
}

extern "C" size_t lora_workspace(int d, int r) { return sizeof(float) * r * d; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  if (r != rank) {
    return cudaErrorInvalidValue;
  }
  float *T = static_cast<float *>(workspace);
  project<<<dim3(ceil_div(d, project_threads), rank), project_threads, 0, stream>>>(B, X, T, d);
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(GemmTiles));
  gemm<<<dim3(ceil_div(d, gemm_block_n), ceil_div(d, gemm_block_m)), gemm_threads,
         sizeof(GemmTiles), stream>>>(W, X, Y, d);
  update<<<dim3(ceil_div(d, update_threads), d), update_threads, 0, stream>>>(A, T, Y, d);
  return cudaGetLastError();
}
