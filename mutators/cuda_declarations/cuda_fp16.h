// Half precision, as declarations only: a type to store, and its conversions. Source: CUDA Math API
// reference, "Half Precision Intrinsics".
#pragma once

typedef _Float16 __half;
__host__ __device__ __half __float2half_rn(float value);
__host__ __device__ float __half2float(__half value);
