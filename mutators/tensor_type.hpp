// The element types in which mma.sync multiplies floats, and how a float becomes several of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace evo {

/// A float is the sum of parts of such a type, each what the earlier ones leave, rounded. A product
/// of floats is then the sum of the products of their parts; those as small as what the parts leave
/// out are dropped.
struct TensorType {
  std::string_view name;
  std::int64_t depth = 0;   // k of one mma.sync
  std::int64_t numbers = 0; // in a register of A or B
  std::int64_t most_parts = 1;
  std::string_view multiply; // leaf helpers
  std::string_view round;
  std::string_view low; // one of a register's as a float: no leaf helper where it is all
  std::string_view high;
};

std::span<const TensorType> tensor_types();

/// "bf16x3": the type and how many products stand for one. Of n parts: n (n + 1) / 2.
std::string strategy_name(const TensorType& type, std::int64_t parts);

} // namespace evo
