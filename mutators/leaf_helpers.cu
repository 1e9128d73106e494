// Instructions that CUDA C++ has no function for, as rewrites put them into kernel files: one
// function per instruction, in this order, each only where it is used (mutators/leaf_helpers.hpp).
// Fragments lie in registers as the PTX ISA's figures on ldmatrix and mma.sync show them.
//
// On cards before sm_80 they do nothing, so that a file for many cards compiles; nothing may run
// them there. ldmatrix reads memory that others write, and says so; like mma.sync it needs the
// whole warp, so it is volatile: it stays where control flow is the same for all lanes.

// Loads one 8x8 matrix of 16-bit elements; lanes 0 to 7 say where its rows begin.
__device__ __forceinline__ void ldmatrix_x1(unsigned (&fragment)[1], const void *row) {
#if __CUDA_ARCH__ >= 800
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(fragment[0])
               : "r"(address)
               : "memory");
#endif
}

// Loads one 8x8 matrix of 16-bit elements, transposed; lanes 0 to 7 say where its rows begin.
__device__ __forceinline__ void ldmatrix_x1_trans(unsigned (&fragment)[1], const void *row) {
#if __CUDA_ARCH__ >= 800
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(fragment[0])
               : "r"(address)
               : "memory");
#endif
}

// Loads two 8x8 matrices of 16-bit elements; lanes 0 to 15 say where their rows begin.
__device__ __forceinline__ void ldmatrix_x2(unsigned (&fragment)[2], const void *row) {
#if __CUDA_ARCH__ >= 800
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(fragment[0]), "=r"(fragment[1])
               : "r"(address)
               : "memory");
#endif
}

// Loads two 8x8 matrices of 16-bit elements, transposed; lanes 0 to 15 say where their rows begin.
__device__ __forceinline__ void ldmatrix_x2_trans(unsigned (&fragment)[2], const void *row) {
#if __CUDA_ARCH__ >= 800
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(fragment[0]), "=r"(fragment[1])
               : "r"(address)
               : "memory");
#endif
}

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

// c += a * b: 16x16 fp16 times 16x8.
__device__ __forceinline__ void mma_fp16(float (&c)[4], const unsigned (&a)[4],
                                         const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
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

// c += a * b: 16x8 tf32 times 8x8.
__device__ __forceinline__ void mma_tf32(float (&c)[4], const unsigned (&a)[4],
                                         const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
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

// Two floats rounded to fp16, side by side.
__device__ __forceinline__ unsigned pack_fp16(float low, float high) {
  unsigned packed = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
#endif
  return packed;
}

// Two floats rounded to bf16, side by side.
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned packed = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
#endif
  return packed;
}

// A float rounded to tf32.
__device__ __forceinline__ unsigned round_tf32(float value) {
  unsigned rounded = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
#endif
  return rounded;
}

// The lower one of two fp16 side by side.
__device__ __forceinline__ float low_fp16(unsigned packed) {
  float value = 0.0f;
#if __CUDA_ARCH__ >= 800
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low; }"
      : "=f"(value)
      : "r"(packed));
#endif
  return value;
}

// The upper one of two fp16 side by side.
__device__ __forceinline__ float high_fp16(unsigned packed) {
  float value = 0.0f;
#if __CUDA_ARCH__ >= 800
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, high; }"
      : "=f"(value)
      : "r"(packed));
#endif
  return value;
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

// The power of two that takes numbers up to a magnitude to at most 2^14, well within fp16.
__device__ __forceinline__ float scale_fp16(float largest) {
  float scale = 0.0f;
#if __CUDA_ARCH__ >= 800
  asm("{ .reg .f32 magnitude, ratio; .reg .b32 bits; "
      "max.f32 magnitude, %1, 0f0D800000; div.rn.f32 ratio, 0f46800000, magnitude; "
      "mov.b32 bits, ratio; and.b32 bits, bits, 0xFF800000; mov.b32 %0, bits; }"
      : "=f"(scale)
      : "f"(largest));
#endif
  return scale;
}

// What takes numbers back that were scaled.
__device__ __forceinline__ float unit_fp16(float scale) {
  float unit = 0.0f;
#if __CUDA_ARCH__ >= 800
  asm("div.rn.f32 %0, 0f3F800000, %1;" : "=f"(unit) : "f"(scale));
#endif
  return unit;
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
