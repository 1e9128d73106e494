// The k tiles that a prologue loads before a reduction begins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mutators/kernel.hpp"

namespace clang {
class Expr;
class FunctionDecl;
class VarDecl;
} // namespace clang

namespace evo {

/// for (stage = 0; stage < count; ++stage) { const int k0 = stage * step; ... }: the first `count`
/// tiles, all of which exist in a sum over count * step elements or more.
struct FirstTiles {
  const clang::VarDecl* first = nullptr; // k0, of each of them
  const clang::Expr* count = nullptr;
  const clang::Expr* step = nullptr;
  std::int64_t elements = 0;
};

/// All that a function loads so, in source order.
std::vector<FirstTiles> find_first_tiles(const Kernel& kernel, const clang::FunctionDecl& function);

/// "(stages - 1) * block_k"; nullopt where a text cannot be read.
std::optional<std::string> elements_text(const Kernel& kernel, const FirstTiles& tiles);

} // namespace evo
