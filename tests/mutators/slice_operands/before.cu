// label: multiply/k int8x6
// label: multiply/k int8x3
#include <cuda_runtime.h>

// c += a * b: 16x16 bf16 times 16x8.
__device__ __forceinline__ void mma_bf16(float (&c)[4], const unsigned (&a)[4],
                                         const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// Two floats rounded to bf16, side by side.
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned packed = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
#endif
  return packed;
}

// The lower one of two bf16 side by side.
__device__ __forceinline__ float low_bf16(unsigned packed) {
  float value = 0.0f;
#if __CUDA_ARCH__ >= 800
  asm("shl.b32 %0, %1, 16;" : "=f"(value) : "r"(packed));
#endif
  return value;
}

// The upper one of two bf16 side by side.
__device__ __forceinline__ float high_bf16(unsigned packed) {
  float value = 0.0f;
#if __CUDA_ARCH__ >= 800
  asm("and.b32 %0, %1, 0xffff0000;" : "=f"(value) : "r"(packed));
#endif
  return value;
}

constexpr int block_m = 32;
constexpr int block_n = 32;
constexpr int block_k = 32;
constexpr int thread_m = 4;
constexpr int thread_n = 4;
constexpr int multiply_parts = 2;
static_assert(block_k % 32 == 0 && thread_m % 2 == 0 && thread_n % 4 == 0);
constexpr int warps_m = block_m / (8 * thread_m);
constexpr int warps_n = block_n / (4 * thread_n);
constexpr int threads = warps_m * warps_n * 32;

__global__ void multiply(const float *W, const float *X, float *Y, int d) {
  __shared__ float w[block_m][block_k];
  __shared__ float x[block_k][block_n];
  const int block_row = blockIdx.y * block_m;
  const int block_col = blockIdx.x * block_n;
  const int warp = threadIdx.x / 32;
  const int thread_row = warp / warps_n * (8 * thread_m) + threadIdx.x % 32 / 4;
  const int thread_col = warp % warps_n * (4 * thread_n) + threadIdx.x % 4 * 2;
  const int lane = threadIdx.x % 32;
  const int fragment_col = thread_col - lane % 4 * 2 + lane / 4;
  float sum[thread_m][thread_n] = {};
  for (int k0 = 0; k0 < d; k0 += block_k) {
    for (int i = threadIdx.x; i < block_m * block_k; i += threads) {
      const int line = block_row + i / block_k;
      const int col = k0 + i % block_k;
      w[i / block_k][i % block_k] = line < d && col < d ? W[line * d + col] : 0.0f;
    }
    for (int i = threadIdx.x; i < block_k * block_n; i += threads) {
      const int line = k0 + i / block_n;
      const int col = block_col + i % block_n;
      x[i / block_n][i % block_n] = line < d && col < d ? X[line * d + col] : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < block_k; k += 16) {
      unsigned x_parts[thread_n / 2][multiply_parts][2];
#pragma unroll
      for (int j = 0; j < thread_n; j += 2) {
#pragma unroll
        for (int slot = 0; slot < 2; ++slot) {
          const int depth = k + slot * 8 + lane % 4 * 2;
          float low = x[depth][fragment_col + j / 2 * 8 + j % 2];
          float high = x[depth + 1][fragment_col + j / 2 * 8 + j % 2];
#pragma unroll
          for (int part = 0; part < multiply_parts; ++part) {
            x_parts[j / 2][part][slot] = pack_bf16(low, high);
            low -= low_bf16(x_parts[j / 2][part][slot]);
            high -= high_bf16(x_parts[j / 2][part][slot]);
          }
        }
      }
#pragma unroll
      for (int i = 0; i < thread_m; i += 2) {
        unsigned w_parts[multiply_parts][4];
#pragma unroll
        for (int slot = 0; slot < 4; ++slot) {
          const int depth = k + slot / 2 * 8 + lane % 4 * 2;
          float low = w[thread_row + (i + slot % 2) * 8][depth];
          float high = w[thread_row + (i + slot % 2) * 8][depth + 1];
#pragma unroll
          for (int part = 0; part < multiply_parts; ++part) {
            w_parts[part][slot] = pack_bf16(low, high);
            low -= low_bf16(w_parts[part][slot]);
            high -= high_bf16(w_parts[part][slot]);
          }
        }
#pragma unroll
        for (int order = multiply_parts - 1; order >= 0; --order) {
#pragma unroll
          for (int part = 0; part <= order; ++part) {
#pragma unroll
            for (int j = 0; j < thread_n; j += 2) {
              float tile[4] = {sum[i][j], sum[i][j + 1], sum[i + 1][j], sum[i + 1][j + 1]};
              mma_bf16(tile, w_parts[order - part], x_parts[j / 2][part]);
              sum[i][j] = tile[0];
              sum[i][j + 1] = tile[1];
              sum[i + 1][j] = tile[2];
              sum[i + 1][j + 1] = tile[3];
            }
          }
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < thread_m; ++i) {
    for (int j = 0; j < thread_n; ++j) {
      const int line = block_row + thread_row + i * 8;
      const int col = block_col + thread_col + j / 2 * 8 + j % 2;
      if (line < d && col < d) {
        Y[line * d + col] = sum[i][j];
      }
    }
  }
}

extern "C" size_t product_workspace(int d) { return 0; }

extern "C" cudaError_t product(const float *W, const float *X, float *Y, int d, void *workspace,
                               cudaStream_t stream) {
  const int blocks_m = (d + block_m - 1) / block_m;
  const int blocks_n = (d + block_n - 1) / block_n;
  multiply<<<dim3(blocks_n, blocks_m), threads, 0, stream>>>(W, X, Y, d);
  return cudaGetLastError();
}
