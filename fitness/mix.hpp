// Numbers that look random, as a function of a number.
#pragma once

#include <cstdint>

namespace evo {

/// The finaliser of SplitMix64: every bit of the input changes about half of the output's.
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

} // namespace evo
