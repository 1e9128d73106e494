// bfloat16, as declarations only: a type to store, and its conversions. Source: CUDA Math API
// reference, "Bfloat16 Precision Intrinsics".
#pragma once

typedef __bf16 __nv_bfloat16;
__host__ __device__ __nv_bfloat16 __float2bfloat16_rn(float value);
__host__ __device__ float __bfloat162float(__nv_bfloat16 value);
