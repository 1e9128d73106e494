#include "fitness/device_state.hpp"

#include <cuda_runtime_api.h>

namespace evo {
namespace {

std::optional<std::size_t> limit(cudaLimit which) {
  std::size_t value = 0;
  return cudaDeviceGetLimit(&value, which) == cudaSuccess ? std::optional(value) : std::nullopt;
}

/// One that outlives the candidate is on the default stream, the only one it is given.
void reset_access_window() {
  cudaStreamAttrValue no_window{};
  cudaStreamSetAttribute(cudaStreamLegacy, cudaStreamAttributeAccessPolicyWindow, &no_window);
  cudaCtxResetPersistingL2Cache();
}

void trim_default_pool() {
  cudaMemPool_t pool{};
  if (cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess) {
    cudaMemPoolTrimTo(pool, 0);
  }
}

} // namespace

DeviceState::DeviceState()
    : limits_{{{cudaLimitStackSize, {}},
               {cudaLimitPrintfFifoSize, {}},
               {cudaLimitMallocHeapSize, {}},
               {cudaLimitMaxL2FetchGranularity, {}},
               {cudaLimitPersistingL2CacheSize, {}}}},
      free_memory_(free_device_memory()) {
  for (Limit& each : limits_) {
    each.value = limit(each.which);
  }
  cudaDeviceGetCacheConfig(&cache_config_);
  cudaGetDeviceFlags(&flags_);
  cudaGetLastError();
}

void DeviceState::restore() const {
  cudaSetDevice(0);
  for (const Limit& each : limits_) {
    if (each.value && limit(each.which) != each.value) {
      cudaDeviceSetLimit(each.which, *each.value);
    }
  }
  unsigned flags = 0;
  if (cudaGetDeviceFlags(&flags) == cudaSuccess && flags != flags_) {
    cudaSetDeviceFlags(flags_);
  }
  cudaDeviceSetCacheConfig(cache_config_);
  reset_access_window();
  trim_default_pool();
  cudaGetLastError();
}

std::size_t free_device_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
}

} // namespace evo
