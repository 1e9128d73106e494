#include "mutators/analysis/padding.hpp"

#include <algorithm>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/references.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// The free constant that `amount` names, if the file uses it nowhere else.
std::optional<Constant> own_constant(const Kernel& kernel, const clang::Expr& amount) {
  const auto* name = dyn_cast<clang::DeclRefExpr>(amount.IgnoreParenImpCasts());
  if (name == nullptr) {
    return std::nullopt;
  }
  const auto constants = find_constants(kernel);
  const auto constant = std::ranges::find(constants, name->getDecl(), &Constant::declaration);
  if (constant == constants.end() || !constant->free) {
    return std::nullopt;
  }
  const auto uses = references(kernel, *constant->declaration);
  return uses && uses->size() == 1 ? std::optional(*constant) : std::nullopt;
}

} // namespace

std::optional<Padding> find_padding(const Kernel& kernel, const TileAccesses& tile) {
  const auto* sum =
      dyn_cast<clang::BinaryOperator>(tile.written_extents.back()->IgnoreParenImpCasts());
  if (sum == nullptr || sum->getOpcode() != clang::BO_Add) {
    return std::nullopt;
  }
  const auto extent = constant_value(kernel, *sum->getLHS());
  const auto value = constant_value(kernel, *sum->getRHS());
  if (!extent || !value || *extent < tile.columns) {
    return std::nullopt;
  }
  return Padding{.extent = sum->getLHS(),
                 .amount = sum->getRHS(),
                 .value = *value,
                 .constant = own_constant(kernel, *sum->getRHS())};
}

} // namespace evo
