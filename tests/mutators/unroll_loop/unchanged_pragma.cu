// A macro's loop cannot be edited, and a loop with a pragma of another kind is left alone.
#include <cuda_runtime.h>

#define LOOP(n) for (int i = 0; i < n; ++i)

__global__ void f(float *out, int n) {
  LOOP(n) { out[i] = 1.0f; }
#pragma clang loop vectorize(enable)
  for (int i = 0; i < n; ++i) {
    out[i] = 2.0f;
  }
}
