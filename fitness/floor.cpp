#include "fitness/floor.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "fitness/concat.hpp"

namespace evo {
namespace {

constexpr double tolerated = 0.95; // of the floor

/// From the vendor's architecture whitepapers. The GeForce cards of an architecture multiply in
/// some classes at half the rate of its other cards.
struct ArchRates {
  const char* arch;
  double fp64;
  double ffma;
  double tf32;
  double bf16;
  double fp16;
  double fp8;
  double int8;
};

constexpr std::array rates{
    ArchRates{"sm_70", 64, 128, 0, 0, 1024, 0, 256},
    ArchRates{"sm_75", 4, 128, 0, 0, 1024, 0, 2048},
    ArchRates{"sm_80", 128, 128, 1024, 2048, 2048, 0, 4096},
    ArchRates{"sm_86", 4, 256, 512, 1024, 1024, 0, 2048},
    ArchRates{"sm_89", 4, 256, 512, 1024, 1024, 2048, 2048},
    ArchRates{"sm_90", 256, 256, 2048, 4096, 4096, 8192, 8192},
};

double rate_of(const ArchRates& of, PrecisionClass precision) {
  switch (precision) {
  case PrecisionClass::Fp64:
    return of.fp64;
  case PrecisionClass::Ffma:
    return of.ffma;
  case PrecisionClass::Tf32:
    return of.tf32;
  case PrecisionClass::Bf16:
    return of.bf16;
  case PrecisionClass::Fp16:
    return of.fp16;
  case PrecisionClass::Fp8:
    return of.fp8;
  case PrecisionClass::Int8:
    return of.int8;
  case PrecisionClass::Unknown:
    break;
  }
  return std::max({of.ffma, of.tf32, of.bf16, of.fp16, of.fp8, of.int8});
}

double bytes_of(const TensorSpec& tensor, const Dims& dims) {
  double bytes = sizeof(float);
  for (const long extent : resolve(tensor, dims)) {
    bytes *= static_cast<double>(extent);
  }
  return bytes;
}

} // namespace

double operations_per_clock(const std::string& arch, PrecisionClass precision) {
  const auto found = std::ranges::find(rates, arch, &ArchRates::arch);
  return found == rates.end() ? 0 : rate_of(*found, precision);
}

double memory_bandwidth(const CardRates& card) {
  return 2 * card.memory_clock_mhz * 1e6 * card.bus_bits / 8; // double data rate
}

Floor::Floor(Problem problem, CardRates card, std::string arch)
    : problem_(std::move(problem)), card_(card), arch_(std::move(arch)) {}

double Floor::ms(int size, PrecisionClass precision) const {
  const double operations =
      operations_per_clock(arch_, precision) * card_.multiprocessors * card_.clock_mhz * 1e6;
  const double multiplying = operations > 0 ? problem_.flops_at(size) / operations : 0;

  const Dims dims = problem_.dims(size);
  double bytes = bytes_of(problem_.output, dims) - card_.l2_bytes;
  for (const TensorSpec& input : problem_.inputs) {
    bytes += bytes_of(input, dims);
  }
  const double bandwidth = memory_bandwidth(card_);
  const double moving = bandwidth > 0 ? std::max(0.0, bytes) / bandwidth : 0;
  return std::max(multiplying, moving) * 1e3;
}

std::string below_floor(const std::vector<SizeResult>& sizes, const Floor& floor,
                        PrecisionClass precision) {
  for (const SizeResult& size : sizes) {
    const double least_ms = floor.ms(size.size, precision);
    if (size.median_ms < tolerated * least_ms) {
      return concat("it takes ", size.median_ms, " ms at ", size.size,
                    ", where the card needs at least ", least_ms, " ms with ",
                    precision == PrecisionClass::Unknown ? "its fastest" : to_string(precision),
                    " products");
    }
  }
  return "";
}

} // namespace evo
