// Rewrites as data: what a mutator proposes, and the one function that applies it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace evo {

/// Replaces `length` bytes at `offset` of the main file by `text`. Offsets are into
/// Kernel::source(), outside every macro expansion.
struct Edit {
  unsigned offset = 0;
  unsigned length = 0;
  std::string text;

  bool operator==(const Edit&) const = default;
};

/// One complete change of a kernel. `edits` are sorted by offset and disjoint (an insertion sorts
/// before a replacement at the same offset). `label` is unique per kernel and mutator and names
/// the site by function and loop or constant, never by line, so that it can be replayed on a
/// relative: "gemm/k unroll 4".
struct Rewrite {
  std::string label;
  std::vector<Edit> edits;

  bool operator==(const Rewrite&) const = default;
};

/// A rewrite by name: what trails are made of.
struct Gene {
  std::string mutator;
  std::string label;

  bool operator==(const Gene&) const = default;
};

/// Sorts the edits into the order that Rewrite promises.
void sort_edits(std::vector<Edit>& edits);

/// The source after `edits`. Overlapping, unsorted or out-of-range edits are a mutator's bug:
/// std::logic_error.
std::string apply_edits(std::string_view source, const std::vector<Edit>& edits);

/// The canonical form of a source: libFormat's LLVM style with a 100-column limit. Idempotent.
/// A genome's id is the digest of this text, so two paths to one kernel meet here.
std::string canonical(std::string_view source);

/// Lower-case hexadecimal SHA-256.
std::string digest(std::string_view text);

} // namespace evo
