// What a candidate may change on the card for those after it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include <driver_types.h>

namespace evo {

/// The state of the current device, as it is when this is made.
class DeviceState {
public:
  DeviceState();

  /// Puts back the current device, its limits and flags, and gives up persisting lines of the L2
  /// cache and memory that the default pool keeps. Best effort: errors are dropped.
  void restore() const;

  /// Bytes of device memory free then.
  std::size_t free_memory() const { return free_memory_; }

private:
  struct Limit {
    cudaLimit which;
    std::optional<std::size_t> value; // nullopt where the card knows no such limit
  };

  std::array<Limit, 5> limits_;
  cudaFuncCache cache_config_{};
  unsigned flags_ = 0;
  std::size_t free_memory_ = 0;
};

/// Bytes of device memory free now; 0 when the device does not answer.
std::size_t free_device_memory();

} // namespace evo
