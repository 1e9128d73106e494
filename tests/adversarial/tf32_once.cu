// expect: wrong answer
// TF32 once: one product of operands rounded to 10 bits, where three would pass. Fast, and right to
// three digits.
#include <cuda_runtime.h>

constexpr int rank = 16;
constexpr int project_threads = 256;
constexpr int gemm_block_m = 64;
constexpr int gemm_block_n = 64;
constexpr int gemm_block_k = 8;
constexpr int gemm_threads = 256; // 8 warps of 16 x 32 outputs

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

__device__ unsigned to_tf32(float value) {
  unsigned bits = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
#endif
  return bits;
}

// 16 x 8 += 16 x 8 times 8 x 8, a warp together.
__device__ void multiply(float *sum, const unsigned *a, const unsigned *b) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

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

__global__ void gemm(const float *W, const float *X, const float *A, const float *T, float *Y,
                     int d) {
  __shared__ unsigned w[gemm_block_m][gemm_block_k];
  __shared__ unsigned x[gemm_block_n][gemm_block_k];
  const int block_row = blockIdx.y * gemm_block_m;
  const int block_col = blockIdx.x * gemm_block_n;
  const int warp = threadIdx.x / 32;
  const int group = threadIdx.x % 32 / 4;
  const int lane = threadIdx.x % 4;
  const int warp_row = warp / 2 * 16;
  const int warp_col = warp % 2 * 32;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < d; k0 += gemm_block_k) {
    for (int i = threadIdx.x; i < gemm_block_m * gemm_block_k; i += gemm_threads) {
      const int row = block_row + i / gemm_block_k;
      const int k = k0 + i % gemm_block_k;
      w[i / gemm_block_k][i % gemm_block_k] = to_tf32(row < d && k < d ? W[row * d + k] : 0.0f);
    }
    for (int i = threadIdx.x; i < gemm_block_k * gemm_block_n; i += gemm_threads) {
      const int k = k0 + i / gemm_block_n;
      const int col = block_col + i % gemm_block_n;
      x[i % gemm_block_n][i / gemm_block_n] = to_tf32(k < d && col < d ? X[k * d + col] : 0.0f);
    }
    __syncthreads();
    for (int j = 0; j < 4; ++j) {
      const int row = warp_row + group;
      const int col = warp_col + j * 8 + group;
      const unsigned a[4] = {w[row][lane], w[row + 8][lane], w[row][lane + 4],
                             w[row + 8][lane + 4]};
      const unsigned b[2] = {x[col][lane], x[col][lane + 4]};
      multiply(sum[j], a, b);
    }
    __syncthreads();
  }
  for (int j = 0; j < 4; ++j) {
    for (int e = 0; e < 4; ++e) {
      const int row = block_row + warp_row + group + e / 2 * 8;
      const int col = block_col + warp_col + j * 8 + lane * 2 + e % 2;
      if (row < d && col < d) {
        float low_rank = 0.0f;
        for (int k = 0; k < rank; ++k) {
          low_rank += A[row * rank + k] * T[k * d + col];
        }
        Y[row * d + col] = sum[j][e] + low_rank;
      }
    }
  }
}

extern "C" size_t lora_workspace(int d, int r) { return sizeof(float) * r * d; }

extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  if (r != rank) {
    return cudaErrorInvalidValue;
  }
  float *T = static_cast<float *>(workspace);
  const dim3 tiles(ceil_div(d, gemm_block_n), ceil_div(d, gemm_block_m));
  project<<<dim3(ceil_div(d, project_threads), rank), project_threads, 0, stream>>>(B, X, T, d);
  gemm<<<tiles, gemm_threads, 0, stream>>>(W, X, A, T, Y, d);
  return cudaGetLastError();
}
