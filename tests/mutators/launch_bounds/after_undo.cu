// label: scale/launch bounds undo
constexpr int scale_threads = 128;

__global__ void scale(const float *X, float *Y, int d) {
  const int i = blockIdx.x * scale_threads + threadIdx.x;
  if (i < d) {
    Y[i] = 2.0f * X[i];
  }
}

extern "C" void entry(const float *X, float *Y, int d) {
  scale<<<(d + scale_threads - 1) / scale_threads, scale_threads>>>(X, Y, d);
}
