// label: multiply/k split beforehand
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
static_assert(block_k % 16 == 0 && thread_m % 2 == 0 && thread_n % 2 == 0);
constexpr int warps_m = block_m / (8 * thread_m);
constexpr int warps_n = block_n / (4 * thread_n);
constexpr int threads = warps_m * warps_n * 32;

constexpr int multiply_stages = 2;
static_assert(multiply_stages == 2);

__host__ __device__ constexpr int round_up(int size, int multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

constexpr int multiply_w_copies = block_k / 16 * (block_m * multiply_parts * 8) / (threads * 4);
static_assert(block_k / 16 * (block_m * multiply_parts * 8) % (threads * 4) == 0);

constexpr int multiply_x_copies = block_k / 16 * (block_n * multiply_parts * 8) / (threads * 4);
static_assert(block_k / 16 * (block_n * multiply_parts * 8) % (threads * 4) == 0);

// Splits a matrix into parts, which multiply loads by ldmatrix: in panels of 16 along k, eight
// rows together, of each part the two halves of a panel behind each other.
__global__ void split_w(const float *W, unsigned *split_words, int d) {
  const int split_row = blockIdx.y * 64 + threadIdx.x / 4;
  const int split_k = (blockIdx.x * 4 + threadIdx.x % 4) * 8;
  const int split_rows = round_up(d, block_m);
  if (split_row < split_rows && split_k < round_up(d, block_k)) {
    float split_values[8];
#pragma unroll
    for (int split_i = 0; split_i < 8; ++split_i) {
      split_values[split_i] =
          split_row < d && split_k + split_i < d ? W[split_row * d + split_k + split_i] : 0.0f;
    }
#pragma unroll
    for (int split_part = 0; split_part < multiply_parts; ++split_part) {
      unsigned split_packed[4];
#pragma unroll
      for (int split_i = 0; split_i < 4; ++split_i) {
        split_packed[split_i] = pack_bf16(split_values[split_i * 2], split_values[split_i * 2 + 1]);
        split_values[split_i * 2] -= low_bf16(split_packed[split_i]);
        split_values[split_i * 2 + 1] -= high_bf16(split_packed[split_i]);
      }
      *reinterpret_cast<uint4 *>(
          &split_words[((split_k / 16 * (split_rows / 8) + split_row / 8) * multiply_parts +
                        split_part) *
                           64 +
                       (split_k / 8 % 2 * 8 + split_row % 8) * 4]) =
          make_uint4(split_packed[0], split_packed[1], split_packed[2], split_packed[3]);
    }
  }
}

// Splits a matrix into parts, which multiply loads by ldmatrix: in panels of 16 along k, eight
// rows together, of each part the two halves of a panel behind each other.
__global__ void split_x(const float *X, unsigned *split_words, int d) {
  const int split_row = blockIdx.x * 256 + threadIdx.x;
  const int split_k = blockIdx.y * 8;
  const int split_rows = round_up(d, block_n);
  if (split_row < split_rows && split_k < round_up(d, block_k)) {
    float split_values[8];
#pragma unroll
    for (int split_i = 0; split_i < 8; ++split_i) {
      split_values[split_i] =
          split_row < d && split_k + split_i < d ? X[(split_k + split_i) * d + split_row] : 0.0f;
    }
#pragma unroll
    for (int split_part = 0; split_part < multiply_parts; ++split_part) {
      unsigned split_packed[4];
#pragma unroll
      for (int split_i = 0; split_i < 4; ++split_i) {
        split_packed[split_i] = pack_bf16(split_values[split_i * 2], split_values[split_i * 2 + 1]);
        split_values[split_i * 2] -= low_bf16(split_packed[split_i]);
        split_values[split_i * 2 + 1] -= high_bf16(split_packed[split_i]);
      }
      *reinterpret_cast<uint4 *>(
          &split_words[((split_k / 16 * (split_rows / 8) + split_row / 8) * multiply_parts +
                        split_part) *
                           64 +
                       (split_k / 8 % 2 * 8 + split_row % 8) * 4]) =
          make_uint4(split_packed[0], split_packed[1], split_packed[2], split_packed[3]);
    }
  }
}

__global__ void multiply(const unsigned *W, const unsigned *X, float *Y, int d) {
  alignas(16) __shared__ unsigned w[multiply_stages][block_k / 16][block_m * multiply_parts * 8];
  alignas(16) __shared__ unsigned x[multiply_stages][block_k / 16][block_n * multiply_parts * 8];
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
  {
    const int k0 = 0;
#pragma unroll
    for (int copy = 0; copy < multiply_w_copies; ++copy) {
      const int word = (threadIdx.x + copy * threads) * 4;
      const int panel = word / (block_m * multiply_parts * 8);
      const int offset = word % (block_m * multiply_parts * 8);
      *reinterpret_cast<uint4 *>(&w[0][panel][offset]) = *reinterpret_cast<const uint4 *>(
          &W[((k0 / 16 + panel) * w_rows + block_row) * (multiply_parts * 8) + offset]);
    }
#pragma unroll
    for (int copy = 0; copy < multiply_x_copies; ++copy) {
      const int word = (threadIdx.x + copy * threads) * 4;
      const int panel = word / (block_n * multiply_parts * 8);
      const int offset = word % (block_n * multiply_parts * 8);
      *reinterpret_cast<uint4 *>(&x[0][panel][offset]) = *reinterpret_cast<const uint4 *>(
          &X[((k0 / 16 + panel) * x_rows + block_col) * (multiply_parts * 8) + offset]);
    }
  }
  __syncthreads();
  int stage = 0;
  for (int k0 = 0; k0 < d - block_k; k0 += block_k) {
    const int next_stage = (stage + 1) % multiply_stages;
    const int k0_next = k0 + block_k;
    uint4 w_next[multiply_w_copies];
    uint4 x_next[multiply_x_copies];
#pragma unroll
    for (int copy = 0; copy < multiply_w_copies; ++copy) {
      const int word = (threadIdx.x + copy * threads) * 4;
      const int panel = word / (block_m * multiply_parts * 8);
      const int offset = word % (block_m * multiply_parts * 8);
      w_next[copy] = *reinterpret_cast<const uint4 *>(
          &W[((k0_next / 16 + panel) * w_rows + block_row) * (multiply_parts * 8) + offset]);
    }
#pragma unroll
    for (int copy = 0; copy < multiply_x_copies; ++copy) {
      const int word = (threadIdx.x + copy * threads) * 4;
      const int panel = word / (block_n * multiply_parts * 8);
      const int offset = word % (block_n * multiply_parts * 8);
      x_next[copy] = *reinterpret_cast<const uint4 *>(
          &X[((k0_next / 16 + panel) * x_rows + block_col) * (multiply_parts * 8) + offset]);
    }
    for (int k = 0; k < block_k; k += 16) {
      unsigned x_parts[thread_n / 2][multiply_parts][2];
#pragma unroll
      for (int pair = 0; pair < thread_n / 2 * multiply_parts; pair += 2) {
        static_assert(thread_n / 2 * multiply_parts % 2 == 0);
        unsigned fragments[4];
        ldmatrix_x4(fragments,
                    &x[stage][k / 16][(x_group * multiply_parts + pair) * 64 + lane * 4]);
#pragma unroll
        for (int fragment = 0; fragment < 4; ++fragment) {
          const int j = (pair + fragment / 2) / multiply_parts * 2;
          const int part = (pair + fragment / 2) % multiply_parts;
          const int slot = fragment % 2;
          x_parts[j / 2][part][slot] = fragments[fragment];
        }
      }
#pragma unroll
      for (int i = 0; i < thread_m; i += 2) {
        unsigned w_parts[multiply_parts][4];
#pragma unroll
        for (int part = 0; part < multiply_parts; ++part) {
          ldmatrix_x4(
              w_parts[part],
              &w[stage][k / 16][((w_group + i + lane / 8 % 2) * multiply_parts + part) * 64 +
                                (lane / 16 * 8 + lane % 8) * 4]);
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
#pragma unroll
    for (int copy = 0; copy < multiply_w_copies; ++copy) {
      const int word = (threadIdx.x + copy * threads) * 4;
      const int panel = word / (block_m * multiply_parts * 8);
      const int offset = word % (block_m * multiply_parts * 8);
      *reinterpret_cast<uint4 *>(&w[next_stage][panel][offset]) = w_next[copy];
    }
#pragma unroll
    for (int copy = 0; copy < multiply_x_copies; ++copy) {
      const int word = (threadIdx.x + copy * threads) * 4;
      const int panel = word / (block_n * multiply_parts * 8);
      const int offset = word % (block_n * multiply_parts * 8);
      *reinterpret_cast<uint4 *>(&x[next_stage][panel][offset]) = x_next[copy];
    }
    __syncthreads();
    stage = next_stage;
  }
  for (int k = 0; k < block_k; k += 16) {
    unsigned x_parts[thread_n / 2][multiply_parts][2];
#pragma unroll
    for (int pair = 0; pair < thread_n / 2 * multiply_parts; pair += 2) {
      static_assert(thread_n / 2 * multiply_parts % 2 == 0);
      unsigned fragments[4];
      ldmatrix_x4(fragments, &x[stage][k / 16][(x_group * multiply_parts + pair) * 64 + lane * 4]);
#pragma unroll
      for (int fragment = 0; fragment < 4; ++fragment) {
        const int j = (pair + fragment / 2) / multiply_parts * 2;
        const int part = (pair + fragment / 2) % multiply_parts;
        const int slot = fragment % 2;
        x_parts[j / 2][part][slot] = fragments[fragment];
      }
    }
#pragma unroll
    for (int i = 0; i < thread_m; i += 2) {
      unsigned w_parts[multiply_parts][4];
#pragma unroll
      for (int part = 0; part < multiply_parts; ++part) {
        ldmatrix_x4(w_parts[part],
                    &w[stage][k / 16][((w_group + i + lane / 8 % 2) * multiply_parts + part) * 64 +
                                      (lane / 16 * 8 + lane % 8) * 4]);
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
         sizeof(unsigned) * multiply_parts * round_up(d, block_m) * round_up(d, block_k) / 2 +
         sizeof(unsigned) * multiply_parts * round_up(d, block_n) * round_up(d, block_k) / 2;
}

extern "C" cudaError_t product(const float *W, const float *X, float *Y, int d, void *workspace,
                               cudaStream_t stream) {
  const int blocks_m = (d + block_m - 1) / block_m;
  const int blocks_n = (d + block_n - 1) / block_n;
  unsigned *w_words =
      reinterpret_cast<unsigned *>(static_cast<char *>(workspace) + multiply_words(d));
  unsigned *x_words = w_words + sizeof(unsigned) * multiply_parts * round_up(d, block_m) *
                                    round_up(d, block_k) / 2 / sizeof(unsigned);
  split_w<<<dim3((round_up(d, block_k) + 8 * 4 - 1) / (8 * 4), (round_up(d, block_m) + 63) / 64),
            256, 0, stream>>>(W, w_words, d);
  split_x<<<dim3((round_up(d, block_n) + 255) / 256, round_up(d, block_k) / 8), 256, 0, stream>>>(
      X, x_words, d);
  multiply<<<dim3(blocks_n, blocks_m), threads, 0, stream>>>(w_words, x_words, Y, d);
  return cudaGetLastError();
}
