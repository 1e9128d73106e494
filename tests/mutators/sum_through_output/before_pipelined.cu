// label: gemm/k0 pieces of 512
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

constexpr int gemm_block_m = 16;
constexpr int gemm_block_n = 16;
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

constexpr int gemm_wave = 82; // blocks that run at once

// Y = W X
__global__ void gemm(const float *W, const float *X, float *Y, int d, float *Y_rest,
                     int whole_rows) {
  extern __shared__ float gemm_shared[];
  GemmTiles &tiles = *reinterpret_cast<GemmTiles *>(gemm_shared);

  const int tail_row = static_cast<int>(blockIdx.y) - whole_rows;
  const unsigned tile_row = tail_row < 0 ? blockIdx.y : whole_rows + tail_row / 2;
  const bool second_half = tail_row >= 0 && tail_row % 2 == 1;
  const int k_middle = (d / gemm_block_k + 1) / 2 * gemm_block_k;
  const int k_begin = second_half ? k_middle : 0;
  const int k_end = tail_row < 0 || second_half ? d : k_middle;
  float *const Y_part = second_half ? Y_rest : Y;
  const int block_row = tile_row * gemm_block_m;
  const int block_col = blockIdx.x * gemm_block_n;
  const int thread_row = threadIdx.x / gemm_threads_n * gemm_thread_m;
  const int thread_col = threadIdx.x % gemm_threads_n * gemm_thread_n;

  float sum[gemm_thread_m][gemm_thread_n] = {};
  for (int stage = 0; stage < gemm_stages - 1; ++stage) {
    const int k0 = k_begin + stage * gemm_block_k;
    if (k0 < k_end) {
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
  for (int k0 = k_begin; k0 < k_end; k0 += gemm_block_k) {
    __pipeline_wait_prior(gemm_stages - 2);
    __syncthreads();
    const int next_stage = stage == 0 ? gemm_stages - 1 : stage - 1;
    const int k0_next = k0 + (gemm_stages - 1) * gemm_block_k;
    if (k0_next < k_end) {
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
    for (int j = 0; j < gemm_thread_n; j += 2) {
      const int row = block_row + thread_row + i;
      const int col = block_col + thread_col + j;
      if (row < d && col + 1 < d &&
          reinterpret_cast<size_t>(&Y_part[row * d + col]) % sizeof(float2) == 0) {
        *reinterpret_cast<float2 *>(&Y_part[row * d + col]) = make_float2(sum[i][j], sum[i][j + 1]);
      } else {
        if (row < d && col < d) {
          Y_part[row * d + col] = sum[i][j];
        }
        if (row < d && col + 1 < d) {
          Y_part[row * d + col + 1] = sum[i][j + 1];
        }
      }
    }
  }
}

constexpr int add_tail_threads = 256;

// The sums of the second halves on top of the first ones.
__global__ void add_tail(const float *rest, float *sums, int first_row, int width) {
  const int rest_row = first_row + blockIdx.y;
  const int rest_col = blockIdx.x * add_tail_threads + threadIdx.x;
  if (rest_col < width) {
    sums[rest_row * width + rest_col] += rest[rest_row * width + rest_col];
  }
}

extern "C" size_t lora_workspace(int d, int r) { return sizeof(float) * d * d; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  const int gemm_cols = ceil_div(d, gemm_block_n);
  const int gemm_rows = ceil_div(d, gemm_block_m);
  const int gemm_tail = gemm_cols * gemm_rows % gemm_wave;
  const int gemm_split = 2 * gemm_tail <= gemm_wave && 2 * gemm_block_k <= d
                             ? (gemm_tail + gemm_cols - 1) / gemm_cols
                             : 0;
  float *Y_rest = static_cast<float *>(workspace) + lora_workspace(d, r) / sizeof(float) - d * d;
  gemm<<<dim3(gemm_cols, gemm_rows + gemm_split), gemm_threads, sizeof(GemmTiles), stream>>>(
      W, X, Y, d, Y_rest, gemm_rows - gemm_split);
  if (gemm_split > 0) {
    const int first_row = (gemm_rows - gemm_split) * gemm_block_m;
    add_tail<<<dim3((d + add_tail_threads - 1) / add_tail_threads, d - first_row), add_tail_threads,
               0, stream>>>(Y_rest, Y, first_row, d);
  }
  return cudaGetLastError();
}
