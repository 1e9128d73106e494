// label: scale/i unroll undo
#include <cuda_runtime.h>

constexpr int factor = 4;

__global__ void scale(float *out, int n) {
  if (n > 0)
#pragma unroll factor
    for (int i = 0; i < n; ++i) {
      out[i] *= 2.0f;
    }
}
