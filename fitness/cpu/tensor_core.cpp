#include "fitness/cpu/tensor_core.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace evo::cpu {
namespace {

using evo_gpu::MatrixType;

constexpr int rows = 16;
constexpr int columns = 8;
constexpr int words = 8; // of a row of A, and of a column of B, in one instruction
constexpr int max_depth = 32;

constexpr int bits_of(MatrixType type) {
  switch (type) {
  case MatrixType::Int8:
    return 8;
  case MatrixType::Tf32:
    return 32;
  default:
    return 16;
  }
}

float as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}

float from_fp16(unsigned half) {
  const unsigned sign = (half & 0x8000u) << 16;
  const unsigned magnitude = half & 0x7fffu;
  constexpr unsigned infinity = 0x7c00u;
  const unsigned wide = magnitude >= infinity
                            ? 0x7f800000u | (magnitude & 0x3ffu) << 13
                            : std::bit_cast<unsigned>(as_float(magnitude << 13) * 0x1p112f);
  return as_float(sign | wide);
}

/// The `index`-th element of a register.
template <typename Element> Element element(MatrixType type, unsigned word, int index) {
  const int bits = bits_of(type);
  const unsigned value = bits == 32 ? word : word >> (index * bits) & ((1u << bits) - 1);
  switch (type) {
  case MatrixType::Int8:
    return static_cast<Element>(static_cast<std::int8_t>(value));
  case MatrixType::Fp16:
    return static_cast<Element>(from_fp16(value));
  case MatrixType::Bf16:
    return static_cast<Element>(as_float(value << 16));
  default:
    return static_cast<Element>(as_float(value & ~0x1fffu)); // tf32 has 10 bits of significand
  }
}

/// A's rows and B's columns.
template <typename Element> struct Operands {
  std::array<std::array<Element, max_depth>, rows> a;
  std::array<std::array<Element, max_depth>, columns> b;
};

const Multiplication& of(const void* lane) {
  return *static_cast<const Multiplication*>(lane);
}

template <typename Element> Operands<Element> operands(MatrixType type, const Lanes& lanes) {
  const int per_word = 32 / bits_of(type);
  Operands<Element> result;
  for (int lane = 0; lane < static_cast<int>(warp_size); ++lane) {
    const MatrixRegisters& registers = of(lanes[static_cast<std::size_t>(lane)]).registers;
    const int group = lane / 4;
    const int place = lane % 4;
    const auto spread = [&](auto& line, int word, unsigned value) {
      for (int i = 0; i < per_word; ++i) {
        line[static_cast<std::size_t>(word * per_word + i)] = element<Element>(type, value, i);
      }
    };
    for (int i = 0; i < 4; ++i) {
      spread(result.a[static_cast<std::size_t>(group + i % 2 * 8)], place + i / 2 * 4,
             registers.a[i]);
    }
    for (int i = 0; i < 2; ++i) {
      spread(result.b[static_cast<std::size_t>(group)], place + i * 4, registers.b[i]);
    }
  }
  return result;
}

// The sums.

/// Rounds towards zero.
float cut_off(double value) {
  const auto nearest = static_cast<float>(value);
  return std::abs(nearest) > std::abs(value) && std::isfinite(nearest)
             ? std::nextafter(nearest, 0.0f)
             : nearest;
}

/// As if it had the exponent of the least normal number where it has a smaller one.
int exponent(double value, MatrixType type) {
  const int least = type == MatrixType::Fp16 ? -14 : -126;
  return value == 0 ? std::numeric_limits<int>::min() / 4 : std::max(std::ilogb(value), least);
}

using Line = std::span<const double>;

float rounded_sum(Line a, Line b, float sum) {
  double result = sum;
  for (std::size_t k = 0; k < a.size(); ++k) {
    result += a[k] * b[k];
  }
  return static_cast<float>(result);
}

/// `bits`: how many are kept behind the largest exponent.
float truncated_sum(MatrixType type, Line a, Line b, float sum, int bits) {
  int largest = exponent(sum, MatrixType::Tf32);
  bool finite = std::isfinite(sum);
  for (std::size_t k = 0; k < a.size(); ++k) {
    finite = finite && std::isfinite(a[k] * b[k]);
    if (a[k] != 0 && b[k] != 0) {
      largest = std::max(largest, exponent(a[k], type) + exponent(b[k], type));
    }
  }
  if (!finite) {
    return rounded_sum(a, b, sum);
  }
  const auto aligned = [&](double value) { return std::trunc(std::ldexp(value, bits - largest)); };
  double total = aligned(sum);
  for (std::size_t k = 0; k < a.size(); ++k) {
    total += aligned(a[k] * b[k]);
  }
  return cut_off(std::ldexp(total, largest - bits));
}

float sum_of(const Multiplication& how, Line a, Line b, float sum) {
  if (how.accumulation == Accumulation::Rounded) {
    return rounded_sum(a, b, sum);
  }
  const bool hopper = how.accumulation == Accumulation::Hopper;
  const std::size_t stretch = hopper ? a.size() : a.size() / 2;
  for (std::size_t k = 0; k < a.size(); k += stretch) {
    sum = truncated_sum(how.type, a.subspan(k, stretch), b.subspan(k, stretch), sum,
                        hopper ? 25 : 24);
  }
  return sum;
}

unsigned sum_of(const Multiplication&, std::span<const int> a, std::span<const int> b,
                unsigned sum) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum += static_cast<unsigned>(a[k] * b[k]);
  }
  return sum;
}

template <typename Element, typename Sum> void multiply_as(const Lanes& lanes) {
  const Multiplication& how = of(lanes[0]);
  const auto depth = static_cast<std::size_t>(words * 32 / bits_of(how.type));
  const Operands<Element> matrices = operands<Element>(how.type, lanes);
  for (std::size_t lane = 0; lane < warp_size; ++lane) {
    for (std::size_t i = 0; i < 4; ++i) {
      const std::span<const Element> a = matrices.a[lane / 4 + i / 2 * 8];
      const std::span<const Element> b = matrices.b[lane % 4 * 2 + i % 2];
      unsigned& sum = of(lanes[lane]).registers.sum[i];
      sum = std::bit_cast<unsigned>(
          sum_of(how, a.first(depth), b.first(depth), std::bit_cast<Sum>(sum)));
    }
  }
}

} // namespace

void multiply(const Lanes& lanes) {
  if (of(lanes[0]).type == MatrixType::Int8) {
    multiply_as<int, unsigned>(lanes);
  } else {
    multiply_as<double, float>(lanes);
  }
}

} // namespace evo::cpu
