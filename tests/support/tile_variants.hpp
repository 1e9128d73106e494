// The same kernel with other tile constants: a mutator must not live on numbers.
#pragma once

#include <string>
#include <vector>

namespace evo::test {

struct TileVariant {
  std::string change; // "gemm_block_m = 32"
  std::string source;
};

/// One variant per free constant (constexpr int at namespace scope, a literal power of two) halved
/// and doubled, of which those that still parse, and so satisfy their static_asserts, and in which
/// every division between constants leaves no remainder.
std::vector<TileVariant> tile_variants(const std::string& source);

} // namespace evo::test
