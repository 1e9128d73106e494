// label: scale/launch bounds
constexpr int scale_threads_x = 32;
constexpr int scale_threads_y = 4;

__global__ void scale(const float *X, float *Y, int d) {
  const int col = blockIdx.x * scale_threads_x + threadIdx.x;
  const int row = blockIdx.y * scale_threads_y + threadIdx.y;
  if (col < d && row < d) {
    Y[row * d + col] = 2.0f * X[row * d + col];
  }
}

extern "C" void entry(const float *X, float *Y, int d) {
  const dim3 grid((d + scale_threads_x - 1) / scale_threads_x,
                  (d + scale_threads_y - 1) / scale_threads_y);
  scale<<<grid, dim3(scale_threads_x, scale_threads_y)>>>(X, Y, d);
}
