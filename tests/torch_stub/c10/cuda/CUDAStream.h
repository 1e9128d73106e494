#pragma once

#include <cuda_runtime.h>

namespace c10::cuda {
/// A stream that no default can be mistaken for.
inline cudaStream_t getCurrentCUDAStream() { return reinterpret_cast<cudaStream_t>(0x5eed); }
} // namespace c10::cuda
