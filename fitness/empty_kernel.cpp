#include "fitness/empty_kernel.hpp"

#include <cuda.h>
#include <dlfcn.h>

namespace evo {
namespace {

constexpr int timed_launches = 100;

/// The oldest architecture that every driver in question compiles for.
constexpr const char* ptx = ".version 6.3\n.target sm_75\n.address_size 64\n"
                            ".visible .entry nothing()\n{\n  ret;\n}\n";

/// The driver's functions, looked up at run time: the worker must start without a driver, too.
template <typename Function> Function* driver(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

} // namespace

double time_empty_kernel(const Timer& timer) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD); // CUDA has loaded it
  if (library == nullptr) {
    return 0;
  }
  const auto load = driver<decltype(cuModuleLoadData)>(library, "cuModuleLoadData");
  const auto find = driver<decltype(cuModuleGetFunction)>(library, "cuModuleGetFunction");
  const auto launch = driver<decltype(cuLaunchKernel)>(library, "cuLaunchKernel");
  const auto unload = driver<decltype(cuModuleUnload)>(library, "cuModuleUnload");
  CUmodule module = nullptr;
  double median_ms = 0;
  if (load(&module, ptx) == CUDA_SUCCESS) {
    CUfunction nothing = nullptr;
    if (find(&nothing, module, "nothing") == CUDA_SUCCESS) {
      const auto call = [&] { launch(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr); };
      timer.time(call); // the first
      median_ms =
          summarize(repeat([&] { return timer.time(call); }, {.calls = timed_launches})).median_ms;
    }
    unload(module);
  }
  dlclose(library);
  return median_ms;
}

} // namespace evo
