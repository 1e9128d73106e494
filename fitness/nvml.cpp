#include "fitness/nvml.hpp"

#include <array>

#include <dlfcn.h>

#include "fitness/concat.hpp"

namespace evo {
namespace {

// The library's header need not be installed; its ABI is fixed.
constexpr int success = 0;
constexpr int sm_clock = 1;
constexpr int memory_clock = 2;
constexpr int die_temperature = 0;

struct Reason {
  unsigned long long bit;
  const char* words;
  bool slows; // by heat or by the hardware, not by a limit that is normal under load
};

constexpr std::array reasons{
    Reason{0x2, "application clocks", false},   Reason{0x4, "power cap", false},
    Reason{0x8, "hardware slowdown", true},     Reason{0x10, "sync boost", false},
    Reason{0x20, "thermal slowdown", true},     Reason{0x40, "hardware thermal slowdown", true},
    Reason{0x80, "hardware power brake", true}, Reason{0x100, "display clocks", false},
};

} // namespace

Nvml::Nvml(const std::string& pci_bus_id) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
  if (library_ == nullptr) {
    missing_ = "clocks and temperature are not recorded: there is no libnvidia-ml.so.1";
    return;
  }
  const auto init = symbol<int()>("nvmlInit_v2");
  const auto find = symbol<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || find == nullptr || init() != success ||
      find(pci_bus_id.c_str(), &card_) != success) {
    card_ = nullptr;
    missing_ =
        concat("clocks and temperature are not recorded: libnvidia-ml.so.1 does not know the "
               "card at ",
               pci_bus_id);
  }
}

Nvml::~Nvml() {
  if (library_ != nullptr) {
    if (const auto shutdown = symbol<int()>("nvmlShutdown")) {
      shutdown();
    }
    dlclose(library_);
  }
}

std::optional<Conditions> Nvml::read() const {
  if (card_ == nullptr) {
    return std::nullopt;
  }
  Conditions now;
  now.sm_clock_mhz = query<unsigned>("nvmlDeviceGetClockInfo", sm_clock);
  now.memory_clock_mhz = query<unsigned>("nvmlDeviceGetClockInfo", memory_clock);
  now.temperature_c = query<unsigned>("nvmlDeviceGetTemperature", die_temperature);
  now.power_w = query<unsigned>("nvmlDeviceGetPowerUsage") / 1000;
  const unsigned long long bits = throttle_reasons();
  for (const Reason& reason : reasons) {
    if ((bits & reason.bit) != 0) {
      now.throttled.emplace_back(reason.words);
      now.slowed |= reason.slows;
    }
  }
  return now;
}

double Nvml::most_sm_clock_mhz() const {
  return card_ == nullptr ? 0 : query<unsigned>("nvmlDeviceGetMaxClockInfo", sm_clock);
}

template <typename Function> Function* Nvml::symbol(const char* name) const {
  return reinterpret_cast<Function*>(dlsym(library_, name));
}

/// 0 for what this driver or this card does not tell.
template <typename Value, typename... Arguments>
double Nvml::query(const char* name, Arguments... arguments) const {
  const auto function = symbol<int(void*, Arguments..., Value*)>(name);
  Value value = 0;
  if (function == nullptr || function(card_, arguments..., &value) != success) {
    return 0;
  }
  return static_cast<double>(value);
}

/// Renamed by newer drivers.
unsigned long long Nvml::throttle_reasons() const {
  for (const char* name :
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}) {
    unsigned long long bits = 0;
    const auto function = symbol<int(void*, unsigned long long*)>(name);
    if (function != nullptr && function(card_, &bits) == success) {
      return bits;
    }
  }
  return 0;
}

} // namespace evo
