// The card's clocks, temperature and power, where the driver's management library is there.
#pragma once

#include <optional>
#include <string>

#include "fitness/protocol.hpp"

namespace evo {

/// Loads the library at run time: it belongs to the driver, and containers may lack it.
class Nvml {
public:
  /// `pci_bus_id` as the CUDA runtime gives it.
  explicit Nvml(const std::string& pci_bus_id);
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  /// Why there are no conditions, in one sentence; empty when there are.
  const std::string& missing() const { return missing_; }
  /// Now. What cannot be read stays 0; nullopt without the library.
  std::optional<Conditions> read() const;
  /// The highest that the card may ever reach, above what its data sheet calls boost; 0: unknown.
  double most_sm_clock_mhz() const;

private:
  template <typename Function> Function* symbol(const char* name) const;
  template <typename Value, typename... Arguments>
  double query(const char* name, Arguments... arguments) const;
  unsigned long long throttle_reasons() const;

  void* library_;
  void* card_ = nullptr;
  std::string missing_;
};

} // namespace evo
