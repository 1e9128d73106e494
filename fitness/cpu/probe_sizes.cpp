#include <algorithm>
#include <optional>
#include <ranges>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "fitness/cpu/lower.hpp"
#include "mutators/analysis/evaluator.hpp"
#include "mutators/analysis/launches.hpp"

namespace evo::cpu {
namespace {

constexpr int smallest = 17;
constexpr int largest = 300;
constexpr int max_tile = 256;
constexpr int other_sizes = 16;   // of all integer parameters but the one that is tried
constexpr int far_away = 1 << 14; // beyond every tile; its square is an int

/// What a launch's grid is made of: one expression per axis. A dim3 variable is what it is
/// initialised with.
std::vector<const clang::Expr*> axes(const clang::Expr* grid) {
  grid = grid->IgnoreUnlessSpelledInSource();
  if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(grid)) {
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(name->getDecl());
    if (variable != nullptr && variable->getInit() != nullptr) {
      return axes(variable->getInit());
    }
  }
  if (const auto* construction = llvm::dyn_cast<clang::CXXConstructExpr>(grid)) {
    std::vector<const clang::Expr*> all;
    for (const clang::Expr* argument : construction->arguments()) {
      if (!llvm::isa<clang::CXXDefaultArgExpr>(argument)) {
        all.push_back(argument);
      }
    }
    return all;
  }
  return {grid};
}

/// A grid's extent along an axis where one size of the problem has a value and all others are
/// small; nullopt where that cannot be told.
std::optional<std::int64_t> extent(const Kernel& kernel, const clang::FunctionDecl& entry,
                                   const clang::Expr& axis, const clang::ParmVarDecl& size,
                                   int value) {
  Assignment sizes;
  for (const clang::ParmVarDecl* parameter : entry.parameters()) {
    if (parameter->getType()->isIntegerType()) {
      sizes[parameter] = parameter == &size ? value : other_sizes;
    }
  }
  const auto result = Evaluator(kernel, sizes).value(axis);
  const auto* number = std::get_if<std::int64_t>(&result);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

/// How far a size can grow before the grid grows along this axis; 1 if it does not depend on any.
int tile_along(const Kernel& kernel, const clang::FunctionDecl& entry, const clang::Expr& axis) {
  int tile = 1;
  for (const clang::ParmVarDecl* size : entry.parameters()) {
    const auto at = [&](int value) { return extent(kernel, entry, axis, *size, value); };
    const auto one = size->getType()->isIntegerType() ? at(1) : std::nullopt;
    if (!one || at(far_away) == one) {
      continue;
    }
    const auto candidates = std::views::iota(1, max_tile + 1);
    const auto beyond =
        std::ranges::partition_point(candidates, [&](int value) { return at(value) == one; });
    tile = std::max(tile, static_cast<int>(beyond - candidates.begin()));
  }
  return tile;
}

/// Of the launch whose blocks cover most, the longer edge; 1 when the grids cannot be evaluated.
int largest_block_tile(const Kernel& kernel) {
  const clang::FunctionDecl* entry = find_entry(kernel);
  int tile = 1;
  long most = 1;
  for (const Launch& launch : find_launches(kernel)) {
    long area = 1;
    int edge = 1;
    for (const clang::Expr* axis : axes(launch.grid)) {
      const int along = tile_along(kernel, *entry, *axis);
      area *= along;
      edge = std::max(edge, along);
    }
    if (area > most) {
      most = area;
      tile = edge;
    }
  }
  return tile;
}

/// The largest `constexpr int name = <literal>;` of the file that can be a tile.
int largest_constant(const Kernel& kernel) {
  long most = 1;
  for (const clang::Decl* declaration : kernel.ast().getTranslationUnitDecl()->decls()) {
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(declaration);
    if (variable != nullptr && variable->isConstexpr() && variable->getInit() != nullptr) {
      const auto* literal =
          llvm::dyn_cast<clang::IntegerLiteral>(variable->getInit()->IgnoreImpCasts());
      if (literal != nullptr && literal->getValue().ule(max_tile)) {
        most = std::max(most, static_cast<long>(literal->getValue().getZExtValue()));
      }
    }
  }
  return static_cast<int>(most);
}

} // namespace

std::vector<int> probe_sizes(const Kernel& kernel) {
  int tile = largest_block_tile(kernel);
  if (tile == 1) {
    tile = largest_constant(kernel);
  }
  std::vector<int> sizes{tile - 1, tile + 1, 2 * tile + 3};
  for (int& size : sizes) {
    size = std::clamp(size, smallest, largest);
  }
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

} // namespace evo::cpu
