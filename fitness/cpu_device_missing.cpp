// In place of cpu_device.cpp where the executor cannot be built.
#include "fitness/device.hpp"

namespace evo {

std::unique_ptr<Device> make_cpu_device(const PrepareRequest&) {
  throw NoDevice("this evo-worker is built without the model backend: install Boost.Context and "
                 "fmt, and build it again");
}

} // namespace evo
