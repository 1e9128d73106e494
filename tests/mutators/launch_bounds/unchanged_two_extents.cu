// Two launches with blocks of different extents.
constexpr int few_threads = 64;
constexpr int many_threads = 128;

__global__ void scale(const float *X, float *Y, int d) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < d) {
    Y[i] = 2.0f * X[i];
  }
}

extern "C" void entry(const float *X, float *Y, int d) {
  scale<<<(d + few_threads - 1) / few_threads, few_threads>>>(X, Y, d);
  scale<<<(d + many_threads - 1) / many_threads, many_threads>>>(Y, Y, d);
}
