// No counted loops: the body, an alias or the condition changes the variable, or it is no for loop.
#include <cuda_runtime.h>

__device__ void bump(int &i) { ++i; }

__global__ void f(float *out, int n) {
  for (int i = 0; i < n; ++i) {
    if (out[i] > 0.0f) {
      i += 2;
    }
  }
  for (int i = 0; i < n; ++i) {
    bump(i);
  }
  for (int i = 0; i < n; ++i) {
    int *alias = &i;
    *alias += 1;
  }
  for (int i = 0; i < n; i *= 2) {
    out[i] = 1.0f;
  }
  for (int i = n; i > 0; --i) {
    out[i] = 2.0f;
  }
  for (float x = 0.0f; x < 4.0f; ++x) {
    out[0] += x;
  }
  int j = 0;
  while (j < n) {
    out[j++] = 0.0f;
  }
}
