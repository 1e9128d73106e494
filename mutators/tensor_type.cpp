#include "mutators/tensor_type.hpp"

#include <array>

namespace evo {

// Two parts of fp16 have 22 bits, as far as its exponents reach; a third one would lie below them.
// Two of tf32 have 22 bits too, three of bf16 have 24.
std::span<const TensorType> tensor_types() {
  static constexpr std::array<TensorType, 3> types{{
      {"bf16", 16, 2, 3, "mma_bf16", "pack_bf16", "low_bf16", "high_bf16"},
      {"fp16", 16, 2, 2, "mma_fp16", "pack_fp16", "low_fp16", "high_fp16"},
      {"tf32", 8, 1, 2, "mma_tf32", "round_tf32", "__uint_as_float", ""},
  }};
  return types;
}

std::string strategy_name(const TensorType& type, std::int64_t parts) {
  return std::string(type.name) + "x" + std::to_string(parts * (parts + 1) / 2);
}

} // namespace evo
