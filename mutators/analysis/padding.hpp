// What is added to the rows of a shared tile to move them to other banks.
#pragma once

#include <cstdint>
#include <optional>

#include "mutators/analysis/constants.hpp"
#include "mutators/analysis/tile_accesses.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class Expr;
} // namespace clang

namespace evo {

/// `extent + amount`, the last extent of a tile of which the accesses use `extent` at most.
struct Padding {
  const clang::Expr* extent = nullptr;
  const clang::Expr* amount = nullptr;
  std::int64_t value = 0; // of the amount
  std::optional<Constant>
      constant; // the amount, where it is a free constant that is used here alone
};

/// nullopt where the last extent is no such sum.
std::optional<Padding> find_padding(const Kernel& kernel, const TileAccesses& tile);

} // namespace evo
