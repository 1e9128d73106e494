// The constant is the entry's own.
__global__ void scale(const float *X, float *Y, int d) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < d) {
    Y[i] = 2.0f * X[i];
  }
}

extern "C" void entry(const float *X, float *Y, int d) {
  constexpr int threads = 128;
  scale<<<(d + threads - 1) / threads, threads>>>(X, Y, d);
}
