#include "mutators/analysis/expressions.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ParentMapContext.h>
#include <clang/AST/TypeLoc.h>
#include <llvm/ADT/FoldingSet.h>

namespace evo {

bool same_expression(const Kernel& kernel, const clang::Expr* a, const clang::Expr* b) {
  if (a == nullptr || b == nullptr) {
    return a == b;
  }
  llvm::FoldingSetNodeID id_a;
  llvm::FoldingSetNodeID id_b;
  a->IgnoreParenImpCasts()->Profile(id_a, kernel.ast(), /*Canonical=*/true);
  b->IgnoreParenImpCasts()->Profile(id_b, kernel.ast(), /*Canonical=*/true);
  return id_a == id_b;
}

const clang::VarDecl* variable_of(const clang::Expr* expr) {
  const auto* reference = llvm::dyn_cast<clang::DeclRefExpr>(expr->IgnoreParenCasts());
  return reference == nullptr ? nullptr : llvm::dyn_cast<clang::VarDecl>(reference->getDecl());
}

const clang::Expr& definition_of(const clang::Expr& expr) {
  const clang::Expr& bare = *expr.IgnoreParenImpCasts();
  const auto* reference = llvm::dyn_cast<clang::DeclRefExpr>(&bare);
  const auto* variable =
      reference == nullptr ? nullptr : llvm::dyn_cast<clang::VarDecl>(reference->getDecl());
  const bool followed = variable != nullptr && variable->isLocalVarDecl() && variable->hasInit() &&
                        variable->getType().isConstQualified();
  return followed ? definition_of(*variable->getInit()) : bare;
}

const clang::Expr& without_wide_casts(const Kernel& kernel, const clang::Expr& expr) {
  const clang::Expr& inner = *expr.IgnoreParens();
  const auto* cast = llvm::dyn_cast<clang::CastExpr>(&inner);
  const bool harmless = cast != nullptr && cast->getType()->isIntegerType() &&
                        cast->getSubExpr()->getType()->isIntegerType() &&
                        kernel.ast().getIntWidth(cast->getType()) >= 32;
  return harmless ? without_wide_casts(kernel, *cast->getSubExpr()) : inner;
}

bool contains(const clang::Stmt& outer, const clang::Stmt& inner) {
  return &outer == &inner || std::ranges::any_of(outer.children(), [&](const clang::Stmt* child) {
    return child != nullptr && contains(*child, inner);
  });
}

const clang::Stmt* parent_of(const Kernel& kernel, const clang::Stmt& node) {
  const auto parents = kernel.ast().getParents(node);
  return parents.empty() ? nullptr : parents[0].get<clang::Stmt>();
}

const clang::Expr& sum_around(const Kernel& kernel, const clang::Expr& summand) {
  const clang::Expr* sum = &summand;
  while (const auto* parent = clang::dyn_cast_or_null<clang::Expr>(parent_of(kernel, *sum))) {
    const auto* operation = clang::dyn_cast<clang::BinaryOperator>(parent);
    const bool adds = operation != nullptr && operation->getOpcode() == clang::BO_Add;
    const bool takes_from = operation != nullptr && operation->getOpcode() == clang::BO_Sub &&
                            operation->getLHS() == sum;
    if (!adds && !takes_from && !clang::isa<clang::ParenExpr, clang::ImplicitCastExpr>(parent)) {
      break;
    }
    sum = parent;
  }
  return *sum;
}

std::vector<const clang::Expr*> written_extents(const clang::ValueDecl& array) {
  std::vector<const clang::Expr*> result;
  const clang::TypeLoc type =
      clang::dyn_cast<clang::DeclaratorDecl>(&array)->getTypeSourceInfo()->getTypeLoc();
  for (auto extent = type.getAs<clang::ArrayTypeLoc>(); extent;
       extent = extent.getElementLoc().getAs<clang::ArrayTypeLoc>()) {
    result.push_back(extent.getSizeExpr());
  }
  return result;
}

} // namespace evo
