// label: multiply/k int8x6
// label: multiply/k int8x3
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

// c += a * b: 16x32 int8 times 32x8, exact.
__device__ __forceinline__ void mma_int8(int (&c)[4], const unsigned (&a)[4],
                                         const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// Four numbers as digits to the base of 256, from the highest of three on, each four side by side.
__device__ __forceinline__ void slice_int8(unsigned (&slices)[3], const float (&values)[4]) {
  slices[0] = 0;
  slices[1] = 0;
  slices[2] = 0;
#if __CUDA_ARCH__ >= 800
  asm("{ .reg .b32 a, b, c, d, ab, cd; "
      "cvt.rni.s32.f32 a, %3; cvt.rni.s32.f32 b, %4; "
      "cvt.rni.s32.f32 c, %5; cvt.rni.s32.f32 d, %6; "
      "add.s32 a, a, 0x808080; add.s32 b, b, 0x808080; "
      "add.s32 c, c, 0x808080; add.s32 d, d, 0x808080; "
      "xor.b32 a, a, 0x808080; xor.b32 b, b, 0x808080; "
      "xor.b32 c, c, 0x808080; xor.b32 d, d, 0x808080; "
      "prmt.b32 ab, a, b, 0x5140; prmt.b32 cd, c, d, 0x5140; "
      "prmt.b32 %2, ab, cd, 0x5410; prmt.b32 %1, ab, cd, 0x7632; "
      "prmt.b32 ab, a, b, 0x0062; prmt.b32 cd, c, d, 0x0062; "
      "prmt.b32 %0, ab, cd, 0x5410; }"
      : "=r"(slices[0]), "=r"(slices[1]), "=r"(slices[2])
      : "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]));
#endif
}

// The power of two that takes numbers up to a magnitude to at most 127 * 256 * 256, to be sliced.
__device__ __forceinline__ float scale_int8(float largest) {
  float scale = 0.0f;
#if __CUDA_ARCH__ >= 800
  asm("{ .reg .f32 magnitude, ratio; .reg .b32 bits; "
      "max.f32 magnitude, %1, 0f0D800000; div.rn.f32 ratio, 0f4AFE0000, magnitude; "
      "mov.b32 bits, ratio; and.b32 bits, bits, 0xFF800000; mov.b32 %0, bits; }"
      : "=f"(scale)
      : "f"(largest));
#endif
  return scale;
}

// What the highest digits count of numbers that were scaled.
__device__ __forceinline__ float unit_int8(float scale) {
  float unit = 0.0f;
#if __CUDA_ARCH__ >= 800
  asm("div.rn.f32 %0, 0f47800000, %1;" : "=f"(unit) : "f"(scale));
#endif
  return unit;
}

// Sums of digits of one order become sums of the next one, which count 256 times as much. Their
// lowest bytes are left over.
__device__ __forceinline__ void next_order_int8(int (&sums)[4], unsigned &left_over) {
#if __CUDA_ARCH__ >= 800
  asm("{ .reg .b32 ab, cd; "
      "prmt.b32 ab, %0, %1, 0x0040; prmt.b32 cd, %2, %3, 0x0040; "
      "prmt.b32 %4, ab, cd, 0x5410; "
      "shr.s32 %0, %0, 8; shr.s32 %1, %1, 8; shr.s32 %2, %2, 8; shr.s32 %3, %3, 8; }"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]), "=r"(left_over));
#endif
}

// Sums of digits, with the lowest bytes that the order before left over, as floats.
__device__ __forceinline__ void sum_int8(float (&values)[4], const int (&sums)[4],
                                         unsigned left_over) {
#if __CUDA_ARCH__ >= 800
  asm("{ .reg .b32 byte; .reg .f32 rest; "
      "cvt.rn.f32.s32 %0, %4; cvt.rn.f32.s32 %1, %5; "
      "cvt.rn.f32.s32 %2, %6; cvt.rn.f32.s32 %3, %7; "
      "bfe.u32 byte, %8, 0, 8; cvt.rn.f32.u32 rest, byte; fma.rn.f32 %0, rest, 0f3B800000, %0; "
      "bfe.u32 byte, %8, 8, 8; cvt.rn.f32.u32 rest, byte; fma.rn.f32 %1, rest, 0f3B800000, %1; "
      "bfe.u32 byte, %8, 16, 8; cvt.rn.f32.u32 rest, byte; fma.rn.f32 %2, rest, 0f3B800000, %2; "
      "bfe.u32 byte, %8, 24, 8; cvt.rn.f32.u32 rest, byte; fma.rn.f32 %3, rest, 0f3B800000, %3; }"
      : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
      : "r"(sums[0]), "r"(sums[1]), "r"(sums[2]), "r"(sums[3]), "r"(left_over));
#endif
}

constexpr int block_m = 32;
constexpr int block_n = 32;
constexpr int block_k = 32;
constexpr int thread_m = 4;
constexpr int thread_n = 4;
static_assert(block_k % 32 == 0 && thread_m % 2 == 0 && thread_n % 4 == 0);
constexpr int warps_m = block_m / (8 * thread_m);
constexpr int warps_n = block_n / (4 * thread_n);
constexpr int threads = warps_m * warps_n * 32;

__host__ __device__ constexpr int round_up(int size, int multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

constexpr int multiply_slices = 3; // of a number, the highest digits first
constexpr int multiply_products = 3 * (3 + 1) / 2;
// Which slices a product is of, from the lowest four bits up.
constexpr unsigned multiply_left_slices = 0x001012;
constexpr unsigned multiply_right_slices = 0x010210;
static_assert(block_k % 32 == 0);

// Splits a matrix for multiply, each row scaled by a power of two that its magnitude asks for. What
// takes the row back is left in split_units.
__global__ void split_w(const float *W, unsigned *split_words, float *split_units, int d) {
  __shared__ float split_magnitudes[32][8];
  const int split_row = blockIdx.x * 8 + threadIdx.x / 4 % 8;
  const int split_first = threadIdx.x / 32 * 4 + threadIdx.x % 4;
  const int split_rows = round_up(d, block_m);
  const int split_k_end = round_up(d, block_k);
  float split_largest = 0.0f;
  for (int split_k = split_first * 16; split_k < split_k_end; split_k += 32 * 16) {
    float split_values[16];
#pragma unroll
    for (int split_i = 0; split_i < 16; ++split_i) {
      split_values[split_i] =
          split_row < d && split_k + split_i < d ? W[split_row * d + split_k + split_i] : 0.0f;
    }
#pragma unroll
    for (int split_i = 0; split_i < 16; ++split_i) {
      split_largest = fmaxf(split_largest, fabsf(split_values[split_i]));
    }
  }
  split_magnitudes[split_first][split_row % 8] = split_largest;
  __syncthreads();
  for (int split_i = 0; split_i < 32; ++split_i) {
    split_largest = fmaxf(split_largest, split_magnitudes[split_i][split_row % 8]);
  }
  const float split_scale = scale_int8(split_largest);
  if (split_first == 0 && split_row < split_rows) {
    split_units[split_row] = unit_int8(split_scale);
  }
  for (int split_k = split_first * 16; split_k < split_k_end && split_row < split_rows;
       split_k += 32 * 16) {
    float split_values[16];
#pragma unroll
    for (int split_i = 0; split_i < 16; ++split_i) {
      split_values[split_i] =
          split_row < d && split_k + split_i < d ? W[split_row * d + split_k + split_i] : 0.0f;
    }
#pragma unroll
    for (int split_i = 0; split_i < 16; ++split_i) {
      split_values[split_i] *= split_scale;
    }
    unsigned split_packed[4][3];
#pragma unroll
    for (int split_i = 0; split_i < 4; ++split_i) {
      const float split_scaled[4] = {split_values[split_i * 4], split_values[split_i * 4 + 1],
                                     split_values[split_i * 4 + 2], split_values[split_i * 4 + 3]};
      slice_int8(split_packed[split_i], split_scaled);
    }
#pragma unroll
    for (int split_part = 0; split_part < multiply_slices; ++split_part) {
      *reinterpret_cast<uint4 *>(
          &split_words
              [((split_part * split_k_end + split_k) / 32 * (split_rows / 8) + split_row / 8) * 64 +
               (split_k / 16 % 2 * 8 + split_row % 8) * 4]) =
          make_uint4(split_packed[0][split_part], split_packed[1][split_part],
                     split_packed[2][split_part], split_packed[3][split_part]);
    }
  }
}

// Splits a matrix for multiply, each row scaled by a power of two that its magnitude asks for. What
// takes the row back is left in split_units.
__global__ void split_x(const float *X, unsigned *split_words, float *split_units, int d) {
  __shared__ float split_magnitudes[32][16];
  const int split_row = blockIdx.x * 16 + threadIdx.x % 16;
  const int split_first = threadIdx.x / 16;
  const int split_rows = round_up(d, block_n);
  const int split_k_end = round_up(d, block_k);
  float split_largest = 0.0f;
  for (int split_k = split_first * 16; split_k < split_k_end; split_k += 32 * 16) {
    float split_values[16];
#pragma unroll
    for (int split_i = 0; split_i < 16; ++split_i) {
      split_values[split_i] =
          split_row < d && split_k + split_i < d ? X[(split_k + split_i) * d + split_row] : 0.0f;
    }
#pragma unroll
    for (int split_i = 0; split_i < 16; ++split_i) {
      split_largest = fmaxf(split_largest, fabsf(split_values[split_i]));
    }
  }
  split_magnitudes[split_first][split_row % 16] = split_largest;
  __syncthreads();
  for (int split_i = 0; split_i < 32; ++split_i) {
    split_largest = fmaxf(split_largest, split_magnitudes[split_i][split_row % 16]);
  }
  const float split_scale = scale_int8(split_largest);
  if (split_first == 0 && split_row < split_rows) {
    split_units[split_row] = unit_int8(split_scale);
  }
  for (int split_k = split_first * 16; split_k < split_k_end && split_row < split_rows;
       split_k += 32 * 16) {
    float split_values[16];
#pragma unroll
    for (int split_i = 0; split_i < 16; ++split_i) {
      split_values[split_i] =
          split_row < d && split_k + split_i < d ? X[(split_k + split_i) * d + split_row] : 0.0f;
    }
#pragma unroll
    for (int split_i = 0; split_i < 16; ++split_i) {
      split_values[split_i] *= split_scale;
    }
    unsigned split_packed[4][3];
#pragma unroll
    for (int split_i = 0; split_i < 4; ++split_i) {
      const float split_scaled[4] = {split_values[split_i * 4], split_values[split_i * 4 + 1],
                                     split_values[split_i * 4 + 2], split_values[split_i * 4 + 3]};
      slice_int8(split_packed[split_i], split_scaled);
    }
#pragma unroll
    for (int split_part = 0; split_part < multiply_slices; ++split_part) {
      *reinterpret_cast<uint4 *>(
          &split_words
              [((split_part * split_k_end + split_k) / 32 * (split_rows / 8) + split_row / 8) * 64 +
               (split_k / 16 % 2 * 8 + split_row % 8) * 4]) =
          make_uint4(split_packed[0][split_part], split_packed[1][split_part],
                     split_packed[2][split_part], split_packed[3][split_part]);
    }
  }
}

__global__ void multiply(const unsigned *W, const unsigned *X, float *Y, int d,
                         const float *w_units, const float *x_units) {
  alignas(16) __shared__ unsigned w[block_k / 32][block_m * 8];
  alignas(16) __shared__ unsigned x[block_k / 32][block_n * 8];
  const int block_row = blockIdx.y * block_m;
  const int block_col = blockIdx.x * block_n;
  const int warp = threadIdx.x / 32;
  const int thread_row = warp / warps_n * (8 * thread_m) + threadIdx.x % 32 / 4;
  const int thread_col = warp % warps_n * (4 * thread_n) + threadIdx.x % 4 * 2;
  const int lane = threadIdx.x % 32;
  const int fragment_col = thread_col - lane % 4 * 2 + lane / 4;
  float sum[thread_m][thread_n] = {};
  const int w_rows = round_up(d, block_m);
  const int w_group = thread_row / 8;
  const int x_rows = round_up(d, block_n);
  const int x_group = fragment_col / 8;
  const int k_depth = round_up(d, block_k);
  int sums[thread_m / 2][thread_n / 2][4] = {};
  unsigned left_over[thread_m / 2][thread_n / 2] = {};
  for (int k0 = 0; k0 < multiply_products * k_depth; k0 += block_k) {
    for (int word = threadIdx.x * 4; word < block_k / 32 * (block_m * 8); word += threads * 4) {
      const int panel = word / (block_m * 8);
      const int offset = word % (block_m * 8);
      *reinterpret_cast<uint4 *>(&w[panel][offset]) = *reinterpret_cast<const uint4 *>(
          &W[((((multiply_left_slices >> k0 / k_depth * 4 & 15) * k_depth + k0 % k_depth) / 32 +
               panel) *
                  w_rows +
              block_row) *
                 8 +
             offset]);
    }
    for (int word = threadIdx.x * 4; word < block_k / 32 * (block_n * 8); word += threads * 4) {
      const int panel = word / (block_n * 8);
      const int offset = word % (block_n * 8);
      *reinterpret_cast<uint4 *>(&x[panel][offset]) = *reinterpret_cast<const uint4 *>(
          &X[((((multiply_right_slices >> k0 / k_depth * 4 & 15) * k_depth + k0 % k_depth) / 32 +
               panel) *
                  x_rows +
              block_col) *
                 8 +
             offset]);
    }
    __syncthreads();
    for (int k = 0; k < block_k; k += 32) {
      unsigned x_parts[thread_n / 2][2];
#pragma unroll
      for (int pair = 0; pair < thread_n / 2; pair += 2) {
        static_assert(thread_n / 2 % 2 == 0);
        unsigned fragments[4];
        ldmatrix_x4(fragments, &x[k / 32][(x_group + pair) * 64 + lane * 4]);
#pragma unroll
        for (int fragment = 0; fragment < 4; ++fragment) {
          x_parts[pair + fragment / 2][fragment % 2] = fragments[fragment];
        }
      }
#pragma unroll
      for (int i = 0; i < thread_m; i += 2) {
        unsigned w_parts[4];
        ldmatrix_x4(w_parts,
                    &w[k / 32][(w_group + i + lane / 8 % 2) * 64 + (lane / 16 * 8 + lane % 8) * 4]);
#pragma unroll
        for (int j = 0; j < thread_n; j += 2) {
          mma_int8(sums[i / 2][j / 2], w_parts, x_parts[j / 2]);
        }
      }
    }
    if (k0 + block_k == 3 * k_depth || k0 + block_k == 5 * k_depth) {
#pragma unroll
      for (int i = 0; i < thread_m / 2; ++i) {
#pragma unroll
        for (int j = 0; j < thread_n / 2; ++j) {
          next_order_int8(sums[i][j], left_over[i][j]);
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < thread_m; i += 2) {
#pragma unroll
    for (int j = 0; j < thread_n; j += 2) {
      float tile_2[4];
      sum_int8(tile_2, sums[i / 2][j / 2], left_over[i / 2][j / 2]);
#pragma unroll
      for (int fragment = 0; fragment < 4; ++fragment) {
        sum[i + fragment / 2][j + fragment % 2] =
            tile_2[fragment] * w_units[block_row + thread_row + (i + fragment / 2) * 8] *
            x_units[block_col + fragment_col - lane / 4 + lane % 4 * 2 + j * 4 + fragment % 2];
      }
    }
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

// Where in the workspace the operands of multiply begin, in bytes: where a line of the cache does.
static size_t multiply_words(int d) { return (0 + 127) / 128 * 128; }

extern "C" size_t product_workspace(int d) {
  return multiply_words(d) +
         sizeof(unsigned) * multiply_slices * round_up(d, block_m) * round_up(d, block_k) / 4 +
         sizeof(unsigned) * multiply_slices * round_up(d, block_n) * round_up(d, block_k) / 4 +
         sizeof(float) * (round_up(d, block_m) + round_up(d, block_n));
}

extern "C" cudaError_t product(const float *W, const float *X, float *Y, int d, void *workspace,
                               cudaStream_t stream) {
  const int blocks_m = (d + block_m - 1) / block_m;
  const int blocks_n = (d + block_n - 1) / block_n;
  unsigned *w_words =
      reinterpret_cast<unsigned *>(static_cast<char *>(workspace) + multiply_words(d));
  unsigned *x_words = w_words + sizeof(unsigned) * multiply_slices * round_up(d, block_m) *
                                    round_up(d, block_k) / 4 / sizeof(unsigned);
  float *w_units = reinterpret_cast<float *>(
      x_words + sizeof(unsigned) * multiply_slices * round_up(d, block_n) * round_up(d, block_k) /
                    4 / sizeof(unsigned));
  float *x_units = w_units + round_up(d, block_m);
  split_w<<<(round_up(d, block_m) + 7) / 8, 256, 0, stream>>>(W, w_words, w_units, d);
  split_x<<<(round_up(d, block_n) + 15) / 16, 512, 0, stream>>>(X, x_words, x_units, d);
  multiply<<<dim3(blocks_n, blocks_m), threads, 0, stream>>>(w_words, x_words, Y, d, w_units,
                                                             x_units);
  return cudaGetLastError();
}
