// What a kernel asks about its place in the grid.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "mutators/kernel.hpp"

namespace clang {
class Expr;
class FunctionDecl;
class MemberExpr;
class VarDecl;
} // namespace clang

namespace evo {

struct GridMentions {
  const clang::VarDecl* block = nullptr; // blockIdx; nullptr: never
  std::size_t block_uses = 0;
  const clang::VarDecl* grid = nullptr; // gridDim; nullptr: never
  std::size_t grid_uses = 0;
  std::vector<const clang::MemberExpr*> components;      // blockIdx.x and so on, in source order
  std::vector<const clang::MemberExpr*> grid_components; // gridDim.x and so on

  bool only_by_component() const { return block_uses == components.size(); }
};

/// What the function's own body mentions.
GridMentions grid_mentions(const clang::FunctionDecl& function);

/// Whether no function but the launched kernels asks for blockIdx, or for gridDim.
bool only_kernels_ask(const Kernel& kernel, const clang::VarDecl& builtin);

/// Where the function's first statement that asks for blockIdx begins.
std::optional<unsigned> begin_of_first_use(const Kernel& kernel,
                                           const clang::FunctionDecl& function,
                                           const clang::VarDecl& block);

/// A grid that is written dim3(x, y); both are nullptr for any other.
struct GridSides {
  const clang::Expr* x = nullptr;
  const clang::Expr* y = nullptr;
};
GridSides grid_sides(const clang::Expr& grid);

} // namespace evo
