// label: store/i#3 unroll full
#include <cuda_runtime.h>

constexpr int items = 16;

__device__ void store(float *out, float *copy) {
  for (int i = 0; i < items; ++i)
    out[i] = 0.0f;
  for (int i = threadIdx.x; i < items; i += 32) {
    out[i] += 1.0f;
  }
#pragma unroll
  for (int i = 0; i < items; i += 2) {
    copy[i] = out[i];
  }
}
