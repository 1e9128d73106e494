// Y = A B on tensor cores, by hand: every float is split into two fp16, and three products are
// added up, the small ones first. A: 64 x depth, B: depth x 64; the depth is a multiple of 32.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

// Loads four 8x8 matrices of 16-bit elements; each lane says where a row begins.
__device__ __forceinline__ void ldmatrix_x4(unsigned (&fragment)[4], const void *row) {
#if __CUDA_ARCH__ >= 800
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(address)
               : "memory");
#endif
}

// Loads four 8x8 matrices of 16-bit elements, transposed; each lane says where a row begins.
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&fragment)[4], const void *row) {
#if __CUDA_ARCH__ >= 800
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(address)
               : "memory");
#endif
}

// sum += a * b: 16x16 fp16 times 16x8.
__device__ __forceinline__ void mma_fp16(float (&sum)[4], const unsigned (&a)[4],
                                         const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

constexpr int block_m = 64;
constexpr int block_n = 64;
constexpr int block_k = 32;
constexpr int padding = 8;
constexpr int warp_m = 32;
constexpr int warp_n = 32;
constexpr int warps_n = block_n / warp_n;
constexpr int threads = block_m / warp_m * warps_n * 32;

struct Tiles {
  __half a_high[block_m][block_k + padding];
  __half a_low[block_m][block_k + padding];
  __half b_high[block_k][block_n + padding];
  __half b_low[block_k][block_n + padding];
};

__global__ void __launch_bounds__(threads)
    product(const float *A, const float *B, float *Y, int depth) {
  __shared__ __align__(16) Tiles tiles;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int row = warp / warps_n * warp_m;
  const int col = warp % warps_n * warp_n;
  float sum[2][4][4] = {};
  for (int k = 0; k < depth; k += block_k) {
    for (int i = threadIdx.x; i < block_m * block_k; i += threads) {
      const float value = A[i / block_k * depth + k + i % block_k];
      const __half high = __float2half_rn(value);
      tiles.a_high[i / block_k][i % block_k] = high;
      tiles.a_low[i / block_k][i % block_k] = __float2half_rn(value - __half2float(high));
    }
    for (int i = threadIdx.x; i < block_k * block_n; i += threads) {
      const float value = B[(k + i / block_n) * block_n + i % block_n];
      const __half high = __float2half_rn(value);
      tiles.b_high[i / block_n][i % block_n] = high;
      tiles.b_low[i / block_n][i % block_n] = __float2half_rn(value - __half2float(high));
    }
    __syncthreads();
    for (int step = 0; step < block_k; step += 16) {
      unsigned a_high[2][4];
      unsigned a_low[2][4];
      for (int i = 0; i < 2; ++i) {
        const int m = row + i * 16 + lane % 16;
        ldmatrix_x4(a_high[i], &tiles.a_high[m][step + lane / 16 * 8]);
        ldmatrix_x4(a_low[i], &tiles.a_low[m][step + lane / 16 * 8]);
      }
      for (int j = 0; j < 4; j += 2) {
        const int n = col + j * 8 + lane / 16 * 8;
        unsigned high[4];
        unsigned low[4];
        ldmatrix_x4_trans(high, &tiles.b_high[step + lane % 16][n]);
        ldmatrix_x4_trans(low, &tiles.b_low[step + lane % 16][n]);
        const unsigned b_high[2][2] = {{high[0], high[1]}, {high[2], high[3]}};
        const unsigned b_low[2][2] = {{low[0], low[1]}, {low[2], low[3]}};
        for (int i = 0; i < 2; ++i) {
          for (int half = 0; half < 2; ++half) {
            mma_fp16(sum[i][j + half], a_high[i], b_low[half]);
            mma_fp16(sum[i][j + half], a_low[i], b_high[half]);
            mma_fp16(sum[i][j + half], a_high[i], b_high[half]);
          }
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int part = 0; part < 4; ++part) {
        const int m = row + i * 16 + lane / 4 + part / 2 * 8;
        const int n = col + j * 8 + lane % 4 * 2 + part % 2;
        Y[m * block_n + n] = sum[i][j][part];
      }
    }
  }
}

extern "C" cudaError_t entry(const float *A, const float *B, float *Y, int depth, void *workspace,
                             cudaStream_t stream) {
  product<<<1, threads, 0, stream>>>(A, B, Y, depth);
  return cudaGetLastError();
}
