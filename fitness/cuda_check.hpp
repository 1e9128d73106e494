// CUDA errors as Failures.
#pragma once

#include <cuda_runtime_api.h>

#include "fitness/concat.hpp"
#include "fitness/device.hpp"

namespace evo {

inline void check_cuda(cudaError_t error, const std::string& what) {
  if (error != cudaSuccess) {
    throw CandidateFailure{
        Verdict::LaunchError,
        concat(what, " ended with ", cudaGetErrorName(error), ": ", cudaGetErrorString(error))};
  }
}

} // namespace evo
