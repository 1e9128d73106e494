// Asynchronous copies from global to shared memory, as declarations only. Source: CUDA C++
// Programming Guide, "Pipeline Primitives Interface".
#pragma once

__device__ void __pipeline_memcpy_async(void *shared, const void *global, size_t size,
                                        size_t zero_filled = 0);
__device__ void __pipeline_commit();
__device__ void __pipeline_wait_prior(size_t groups);
