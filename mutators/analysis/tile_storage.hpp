// Where a kernel's shared tiles are declared, and whether they may grow.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mutators/analysis/stage_model.hpp"

namespace clang {
class RecordDecl;
class ValueDecl;
} // namespace clang

namespace evo {

/// A tile is a `__shared__` variable of its own, or a member of a struct that is such a variable or
/// lies over the kernel's `extern __shared__` memory.
struct TileStorage {
  std::vector<const clang::ValueDecl*> tiles; // variable or member, in the order of Stages::tiles
  const clang::RecordDecl* record = nullptr;  // the struct; nullptr: no tile is a member
  bool dynamic = false;                       // behind extern __shared__
  std::int64_t static_bytes = 0;              // of all of the kernel's own __shared__ variables
  std::int64_t alignment = 1;                 // the strictest that an access to shared memory needs
};

/// nullopt unless the tiles' memory is reached by their names alone: all in one struct or none, the
/// struct mentioned once as the view of the dynamic memory (without an offset), and no second
/// view of it, copy of it or unnamed access to it anywhere in the kernel.
std::optional<TileStorage> find_tile_storage(const Kernel& kernel, const Stages& stages);

/// Whether the tiles may take so many bytes more: the block stays within the target's shared memory
/// (48 KiB of it static), and every launch asks for the dynamic part by sizeof of the struct, with
/// cudaFuncSetAttribute where it is needed.
bool can_grow(const Kernel& kernel, const clang::FunctionDecl& function, const TileStorage& storage,
              std::int64_t more_bytes);

/// Whether the tiles may be there so many times, each behind itself: what is aligned stays so, and
/// they can grow.
bool can_hold(const Kernel& kernel, const Stages& stages, const TileStorage& storage, int times);

} // namespace evo
