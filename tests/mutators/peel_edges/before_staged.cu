// label: gemm/k0 peel edges
#include <cuda_runtime.h>

constexpr int gemm_block_m = 32;
constexpr int gemm_block_n = 32;
constexpr int gemm_block_k = 8;
constexpr int gemm_thread_m = 2;
constexpr int gemm_thread_n = 2;
constexpr int gemm_threads_n = gemm_block_n / gemm_thread_n;
constexpr int gemm_threads = gemm_block_m / gemm_thread_m * gemm_threads_n;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

constexpr int gemm_stages = 2;
static_assert(gemm_stages == 2);

// One tile of each operand.
struct GemmTiles {
  float w[gemm_stages][gemm_block_k][gemm_block_m];
  alignas(8) float x[gemm_stages][gemm_block_k][gemm_block_n];
};

constexpr int gemm_w_loads =
    (gemm_block_m * gemm_block_k + (gemm_threads * 4) - 1) / (gemm_threads * 4);
constexpr int gemm_x_loads = gemm_block_k * gemm_block_n / gemm_threads;
static_assert(gemm_block_k * gemm_block_n % gemm_threads == 0);

// Y = W X
__global__ void gemm(const float *W, const float *X, float *Y, int d) {
  alignas(8) extern __shared__ float gemm_shared[];
  GemmTiles &tiles = *reinterpret_cast<GemmTiles *>(gemm_shared);

  const int block_row = blockIdx.y * gemm_block_m;
  const int block_col = blockIdx.x * gemm_block_n;
  const int thread_row = threadIdx.x / gemm_threads_n * gemm_thread_m;
  const int thread_col = threadIdx.x % gemm_threads_n * gemm_thread_n;

  float sum[gemm_thread_m][gemm_thread_n] = {};
  static_assert(sizeof(GemmTiles::w[0]) % 8 == 0);
  static_assert(sizeof(GemmTiles::x[0]) % 8 == 0);
  {
    const int k0 = 0;
    for (int i = threadIdx.x * 4; i < gemm_block_m * gemm_block_k; i += gemm_threads * 4) {
      const int row = i / gemm_block_k;
      const int k = i % gemm_block_k;
      const float4 w_vector =
          block_row + row < d && k0 + k + 3 < d &&
                  reinterpret_cast<size_t>(&W[(block_row + row) * d + k0 + k]) % sizeof(float4) == 0
              ? *reinterpret_cast<const float4 *>(&W[(block_row + row) * d + k0 + k])
              : make_float4(
                    block_row + row < d && k0 + k < d ? W[(block_row + row) * d + k0 + k] : 0.0f,
                    block_row + row < d && k0 + k + 1 < d ? W[(block_row + row) * d + k0 + k + 1]
                                                          : 0.0f,
                    block_row + row < d && k0 + k + 2 < d ? W[(block_row + row) * d + k0 + k + 2]
                                                          : 0.0f,
                    block_row + row < d && k0 + k + 3 < d ? W[(block_row + row) * d + k0 + k + 3]
                                                          : 0.0f);
      tiles.w[0][k][row] = w_vector.x;
      tiles.w[0][k + 1][row] = w_vector.y;
      tiles.w[0][k + 2][row] = w_vector.z;
      tiles.w[0][k + 3][row] = w_vector.w;
    }
    for (int i = threadIdx.x; i < gemm_block_k * gemm_block_n; i += gemm_threads) {
      const int k = i / gemm_block_n;
      const int col = i % gemm_block_n;
      tiles.x[0][k][col] =
          k0 + k < d && block_col + col < d ? X[(k0 + k) * d + block_col + col] : 0.0f;
    }
  }
  __syncthreads();
  int stage = 0;
  for (int k0 = 0; k0 < d - gemm_block_k; k0 += gemm_block_k) {
    const int next_stage = (stage + 1) % gemm_stages;
    const int k0_next = k0 + gemm_block_k;
    float w_next[gemm_w_loads];
    float w_next_2[gemm_w_loads];
    float w_next_3[gemm_w_loads];
    float w_next_4[gemm_w_loads];
    float x_next[gemm_x_loads];
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
      const int i = threadIdx.x + step * gemm_threads;
      const int k = i / gemm_block_n;
      const int col = i % gemm_block_n;
      x_next[step] =
          k0_next + k < d && block_col + col < d ? X[(k0_next + k) * d + block_col + col] : 0.0f;
    }
    for (int k = 0; k < gemm_block_k; ++k) {
      float w_fragment[gemm_thread_m];
#pragma unroll
      for (int i = 0; i < gemm_thread_m; ++i) {
        w_fragment[i] = tiles.w[stage][k][thread_row + i];
      }
      float x_fragment[gemm_thread_n];
#pragma unroll
      for (int j = 0; j < gemm_thread_n; j += 2) {
        const float2 x_fragment_vector =
            *reinterpret_cast<const float2 *>(&tiles.x[stage][k][thread_col + j]);
        x_fragment[j] = x_fragment_vector.x;
        x_fragment[j + 1] = x_fragment_vector.y;
      }
      for (int i = 0; i < gemm_thread_m; ++i) {
        for (int j = 0; j < gemm_thread_n; ++j) {
          sum[i][j] += w_fragment[i] * x_fragment[j];
        }
      }
    }
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
#pragma unroll
    for (int step = 0; step < gemm_x_loads; ++step) {
      const int i = threadIdx.x + step * gemm_threads;
      const int k = i / gemm_block_n;
      const int col = i % gemm_block_n;
      tiles.x[next_stage][k][col] = x_next[step];
    }
    __syncthreads();
    stage = next_stage;
  }
  for (int k = 0; k < gemm_block_k; ++k) {
    float w_fragment[gemm_thread_m];
#pragma unroll
    for (int i = 0; i < gemm_thread_m; ++i) {
      w_fragment[i] = tiles.w[stage][k][thread_row + i];
    }
    float x_fragment[gemm_thread_n];
#pragma unroll
    for (int j = 0; j < gemm_thread_n; j += 2) {
      const float2 x_fragment_vector =
          *reinterpret_cast<const float2 *>(&tiles.x[stage][k][thread_col + j]);
      x_fragment[j] = x_fragment_vector.x;
      x_fragment[j + 1] = x_fragment_vector.y;
    }
    for (int i = 0; i < gemm_thread_m; ++i) {
      for (int j = 0; j < gemm_thread_n; ++j) {
        sum[i][j] += w_fragment[i] * x_fragment[j];
      }
    }
  }

  for (int i = 0; i < gemm_thread_m; ++i) {
    for (int j = 0; j < gemm_thread_n; j += 2) {
      const int row = block_row + thread_row + i;
      const int col = block_col + thread_col + j;
      if (row < d && col + 1 < d &&
          reinterpret_cast<size_t>(&Y[row * d + col]) % sizeof(float2) == 0) {
        *reinterpret_cast<float2 *>(&Y[row * d + col]) = make_float2(sum[i][j], sum[i][j + 1]);
      } else {
        if (row < d && col < d) {
          Y[row * d + col] = sum[i][j];
        }
        if (row < d && col + 1 < d) {
          Y[row * d + col + 1] = sum[i][j + 1];
        }
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
