// The host types of a kernel file's entry, where there is no CUDA toolkit.
#pragma once

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
using cudaStream_t = struct CUstream_st *;

inline const char *cudaGetErrorString(cudaError_t) { return "invalid argument"; }
