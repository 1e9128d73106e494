#pragma once

namespace c10::cuda {
inline int guarded_device = -1;

struct CUDAGuard {
  explicit CUDAGuard(torch::Device device) { guarded_device = device.index; }
};
} // namespace c10::cuda
