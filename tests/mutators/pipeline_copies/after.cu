// label: gemm/k0 stages 3 async
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

constexpr int gemm_block_m = 32;
constexpr int gemm_block_n = 32;
constexpr int gemm_block_k = 8;
constexpr int gemm_thread_m = 2;
constexpr int gemm_thread_n = 2;
constexpr int gemm_threads_n = gemm_block_n / gemm_thread_n;
constexpr int gemm_threads = gemm_block_m / gemm_thread_m * gemm_threads_n;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

constexpr int gemm_stages = 3;
static_assert(gemm_stages >= 2);

// One tile of each operand.
struct GemmTiles {
  float w[gemm_stages][gemm_block_m][gemm_block_k];
  float x[gemm_stages][gemm_block_k][gemm_block_n];
};

constexpr int gemm_w_loads = gemm_block_m * gemm_block_k / gemm_threads;
static_assert(gemm_block_m * gemm_block_k % gemm_threads == 0);
constexpr int gemm_x_loads = gemm_block_k * gemm_block_n / gemm_threads;
static_assert(gemm_block_k * gemm_block_n % gemm_threads == 0);

// Y = W X
__global__ void gemm(const float *W, const float *X, float *Y, int d) {
  extern __shared__ float gemm_shared[];
  GemmTiles &tiles = *reinterpret_cast<GemmTiles *>(gemm_shared);

  const int block_row = blockIdx.y * gemm_block_m;
  const int block_col = blockIdx.x * gemm_block_n;
  const int thread_row = threadIdx.x / gemm_threads_n * gemm_thread_m;
  const int thread_col = threadIdx.x % gemm_threads_n * gemm_thread_n;

  float sum[gemm_thread_m][gemm_thread_n] = {};
  for (int stage = 0; stage < gemm_stages - 1; ++stage) {
    const int k0 = stage * gemm_block_k;
    if (k0 < d) {
#pragma unroll
      for (int step = 0; step < gemm_w_loads; ++step) {
        const int i = threadIdx.x + step * gemm_threads;
        const int row = i / gemm_block_k;
        const int k = i % gemm_block_k;
        __pipeline_memcpy_async(&tiles.w[stage][row][k], &W[(block_row + row) * d + k0 + k],
                                sizeof(float),
                                block_row + row < d && k0 + k < d ? 0 : sizeof(float));
      }
#pragma unroll
      for (int step = 0; step < gemm_x_loads; ++step) {
        const int i = threadIdx.x + step * gemm_threads;
        const int k = i / gemm_block_n;
        const int col = i % gemm_block_n;
        __pipeline_memcpy_async(&tiles.x[stage][k][col], &X[(k0 + k) * d + block_col + col],
                                sizeof(float),
                                k0 + k < d && block_col + col < d ? 0 : sizeof(float));
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
    if (k0_next < d) {
#pragma unroll
      for (int step = 0; step < gemm_w_loads; ++step) {
        const int i = threadIdx.x + step * gemm_threads;
        const int row = i / gemm_block_k;
        const int k = i % gemm_block_k;
        __pipeline_memcpy_async(&tiles.w[next_stage][row][k],
                                &W[(block_row + row) * d + k0_next + k], sizeof(float),
                                block_row + row < d && k0_next + k < d ? 0 : sizeof(float));
      }
#pragma unroll
      for (int step = 0; step < gemm_x_loads; ++step) {
        const int i = threadIdx.x + step * gemm_threads;
        const int k = i / gemm_block_n;
        const int col = i % gemm_block_n;
        __pipeline_memcpy_async(&tiles.x[next_stage][k][col],
                                &X[(k0_next + k) * d + block_col + col], sizeof(float),
                                k0_next + k < d && block_col + col < d ? 0 : sizeof(float));
      }
    }
    __pipeline_commit();
    for (int k = 0; k < gemm_block_k; ++k) {
      for (int i = 0; i < gemm_thread_m; ++i) {
        for (int j = 0; j < gemm_thread_n; ++j) {
          sum[i][j] += tiles.w[stage][thread_row + i][k] * tiles.x[stage][k][thread_col + j];
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

extern "C" size_t lora_workspace(int d, int r) { return 0; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  gemm<<<dim3(ceil_div(d, gemm_block_n), ceil_div(d, gemm_block_m)), gemm_threads,
         sizeof(GemmTiles), stream>>>(W, X, Y, d);
  return cudaGetLastError();
}
