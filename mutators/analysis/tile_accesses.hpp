// Every access to a kernel's shared tiles: found by name, proved complete by running the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mutators/analysis/tile_storage.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class Expr;
class FunctionDecl;
class ValueDecl;
} // namespace clang

namespace evo {

/// tile[i]...[row][column], read or written as an element or, through a cast of it or of its
/// address to a wider type, as several in a row: reinterpret_cast<float4 &>(tile[row][column]).
struct TileAccess {
  std::vector<const clang::Expr*> indices; // one per dimension of the tile
  bool wide = false;
  std::vector<const clang::Expr*> sites; // tile[i]...[column] and what wraps it up to its use
};

struct TileAccesses {
  const clang::ValueDecl* tile = nullptr;
  std::vector<std::int64_t> extents; // two or more
  std::vector<const clang::Expr*> written_extents;
  std::vector<TileAccess> list; // in source order
  std::int64_t columns = 0;     // the greatest column that is touched, plus one
  std::int64_t widest = 1;      // elements of one access
  bool aligned = true;          // every access begins at a multiple of its own width
  bool a_row_per_warp = true;   // no warp touches several rows at once
};

/// The tiles of a kernel that may be laid out anew by changing their declaration and these accesses
/// alone:
/// - the declaration writes all extents itself, none by an alias of a type;
/// - each use of the tile's name is such an access, outside macros, or stands in the sizeof of an
/// element or of more than a row; the struct that it is a
///   member of is used by its members only;
/// - run for the first and last blocks of small problems, every access is reached, every index
///   stays within its own dimension, every wide access within its row, and nothing else touches
///   the tile.
std::vector<TileAccesses> find_tile_accesses(const Kernel& kernel,
                                             const clang::FunctionDecl& function,
                                             const TileStorage& storage);

} // namespace evo
