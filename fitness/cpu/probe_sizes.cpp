#include <algorithm>
#include <array>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "fitness/cpu/lower.hpp"
#include "mutators/analysis/launches.hpp"

namespace evo::cpu {
namespace {

constexpr int smallest = 17;
constexpr int largest = 300;
constexpr int max_tile = 256;
constexpr int other_sizes = 16; // of all integer parameters but the one that is tried

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

/// Evaluates an expression of the entry with numbers for its parameters.
class Evaluator {
public:
  Evaluator(clang::ASTContext& ast, const clang::FunctionDecl& entry) : ast_(ast), entry_(entry) {}

  /// `parameter` set to `value`; nullopt for what is no constant expression then.
  std::optional<long> at(const clang::Expr& expression, unsigned parameter, int value) const {
    std::vector<const clang::Expr*> arguments;
    for (unsigned i = 0; i < entry_.getNumParams(); ++i) {
      arguments.push_back(literal(i == parameter ? value : other_sizes));
    }
    clang::APValue result;
    if (!expression.EvaluateWithSubstitution(result, ast_, &entry_, arguments) || !result.isInt()) {
      return std::nullopt;
    }
    return result.getInt().getExtValue();
  }

private:
  const clang::Expr* literal(int value) const {
    const auto width = static_cast<unsigned>(ast_.getIntWidth(ast_.IntTy));
    return clang::IntegerLiteral::Create(ast_, llvm::APInt(width, static_cast<unsigned>(value)),
                                         ast_.IntTy, {});
  }

  clang::ASTContext& ast_;
  const clang::FunctionDecl& entry_;
};

/// How far a size can grow before the grid grows along this axis; 1 if it does not depend on any.
int tile_along(const Evaluator& evaluator, const clang::FunctionDecl& entry,
               const clang::Expr& axis) {
  int tile = 1;
  for (unsigned parameter = 0; parameter < entry.getNumParams(); ++parameter) {
    const auto one = evaluator.at(axis, parameter, 1);
    if (!entry.getParamDecl(parameter)->getType()->isIntegerType() || !one ||
        evaluator.at(axis, parameter, 1 << 20) == one) {
      continue;
    }
    int size = 1;
    while (size < max_tile && evaluator.at(axis, parameter, size + 1) == one) {
      ++size;
    }
    tile = std::max(tile, size);
  }
  return tile;
}

/// Of the launch whose blocks cover most, the longer edge; 1 when the grids cannot be evaluated.
int largest_block_tile(const Kernel& kernel) {
  const clang::FunctionDecl* entry = find_entry(kernel);
  int tile = 1;
  long most = 1;
  for (const Launch& launch : find_launches(kernel)) {
    const Evaluator evaluator(kernel.ast(), *entry);
    long area = 1;
    int edge = 1;
    for (const clang::Expr* axis : axes(launch.grid)) {
      const int along = tile_along(evaluator, *entry, *axis);
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
