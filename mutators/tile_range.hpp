// From where to where a kernel's reductions count their k tiles.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace clang {
class Expr;
class FunctionDecl;
class VarDecl;
} // namespace clang

namespace evo {

/// Loops over the k tiles of one kernel, or over pieces of several tiles, all from 0 to one size.
struct TileLoops {
  std::vector<CountedLoop> loops;
  const clang::VarDecl* limit = nullptr; // the size that is summed over
  const clang::Expr* step = nullptr;     // a tile's length
};

/// The loop that runs a reduction in pieces: the reduction starts at its counter. nullopt without
/// one.
std::optional<CountedLoop> loop_over_pieces(const Kernel& kernel, const CountedLoop& reduction);

/// Makes these loops count from `begin` to `end`, which are variables, and with them the prologues
/// that load tiles ahead (first_tiles.hpp), the tests of whether there is a tile or was a piece,
/// and where a piece ends. Guards of single elements stay: they know where the matrix ends.
/// CannotWrite (inline_update.hpp) where one stands in a macro.
std::vector<Edit> count_tiles(const Kernel& kernel, const clang::FunctionDecl& function,
                              const TileLoops& loops, const std::string& begin,
                              const std::string& end);

} // namespace evo
