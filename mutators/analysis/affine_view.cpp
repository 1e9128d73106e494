#include "mutators/analysis/affine_view.hpp"

#include <bit>
#include <numeric>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ParentMapContext.h>
#include <clang/AST/Stmt.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/expressions.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// Whether this is a component of threadIdx, blockIdx, blockDim or gridDim.
bool is_builtin(const Kernel& kernel, const clang::Expr& expr) {
  const auto* member = dyn_cast<clang::MemberExpr>(&expr);
  const auto* base = member == nullptr
                         ? nullptr
                         : dyn_cast<clang::DeclRefExpr>(member->getBase()->IgnoreParenImpCasts());
  const auto* variable = base == nullptr ? nullptr : dyn_cast<clang::VarDecl>(base->getDecl());
  return variable != nullptr && variable->hasGlobalStorage() &&
         !kernel.ast().getSourceManager().isInMainFile(variable->getLocation());
}

/// What becomes of two values that are the same for all elements of a group.
std::optional<Progression> resting(const Progression& a, const Progression& b) {
  return a.slope == 0 && b.slope == 0
             ? std::optional(Progression{0, 1, a.non_negative && b.non_negative})
             : std::nullopt;
}

/// A variable or a member of one: nothing in it moves.
bool is_named(const clang::Expr& base) {
  const clang::Expr* named = base.IgnoreParenImpCasts();
  const auto* member = dyn_cast<clang::MemberExpr>(named);
  return clang::isa<clang::DeclRefExpr>(
      member == nullptr ? named : member->getBase()->IgnoreParenImpCasts());
}

} // namespace

std::optional<Progression> AffineView::of(const clang::Expr& integer) const {
  if (const auto value = constant_value(kernel_, integer)) {
    return Progression{0, *value < 0 ? -*value : *value, *value >= 0};
  }
  const clang::Expr& expr = without_wide_casts(kernel_, integer);
  if (is_builtin(kernel_, expr)) {
    return Progression{0, 1, true};
  }
  if (const auto* reference = dyn_cast<clang::DeclRefExpr>(&expr)) {
    const auto* declaration = dyn_cast<clang::VarDecl>(reference->getDecl());
    return declaration == nullptr ? std::nullopt : variable(*declaration);
  }
  if (const auto* choice = dyn_cast<clang::ConditionalOperator>(&expr)) {
    const auto condition = of(*choice->getCond());
    const auto yes = of(*choice->getTrueExpr());
    const auto no = of(*choice->getFalseExpr());
    return condition && condition->slope == 0 && yes && no ? resting(*yes, *no) : std::nullopt;
  }
  const auto* operation = dyn_cast<clang::BinaryOperator>(&expr);
  return operation == nullptr
             ? std::nullopt
             : combined(operation->getOpcode(), *operation->getLHS(), *operation->getRHS());
}

std::optional<Progression> AffineView::variable(const clang::VarDecl& declaration) const {
  if (moving_.contains(&declaration)) {
    return Progression{1, width_, true};
  }
  if (auto counted = counter(declaration)) {
    return counted;
  }
  const auto* function = dyn_cast<clang::FunctionDecl>(declaration.getDeclContext());
  const bool stays = declaration.getType().isConstQualified() ||
                     (function != nullptr && !may_change(*function->getBody(), declaration));
  if (declaration.getInit() != nullptr && stays && !clang::isa<clang::ParmVarDecl>(declaration)) {
    return of(*declaration.getInit());
  }
  // A variable that the loop changes is the caller's to refuse.
  return Progression{};
}

std::optional<Progression> AffineView::counter(const clang::VarDecl& declaration) const {
  const auto counted = loop_of_counter(kernel_, declaration);
  const auto start = counted ? of(*counted->start) : std::nullopt;
  if (!start || start->slope != 0) {
    return std::nullopt;
  }
  return Progression{0, std::gcd(start->multiple, counted->step_value), start->non_negative};
}

std::optional<Progression> AffineView::divided(Progression value, std::int64_t divisor) const {
  const std::int64_t multiple = value.multiple % divisor == 0 ? value.multiple / divisor : 1;
  const bool whole = value.slope == 1 && value.non_negative && value.is_multiple_of(width_) &&
                     divisor % width_ == 0;
  return value.slope == 0 || whole ? std::optional(Progression{0, multiple, value.non_negative})
                                   : std::nullopt;
}

std::optional<Progression> AffineView::remainder(Progression value, std::int64_t divisor) const {
  const bool whole = value.slope == 1 && value.non_negative && value.is_multiple_of(width_) &&
                     divisor % width_ == 0;
  return value.slope == 0 || whole
             ? std::optional(
                   Progression{value.slope, std::gcd(value.multiple, divisor), value.non_negative})
             : std::nullopt;
}

std::optional<Progression> AffineView::combined(int opcode, const clang::Expr& left,
                                                const clang::Expr& right) const {
  const auto a = of(left);
  const auto b = of(right);
  if (!a || !b) {
    return std::nullopt;
  }
  const auto constant = constant_value(kernel_, right);
  const bool non_negative = a->non_negative && b->non_negative;
  switch (opcode) {
  case clang::BO_Add:
    return Progression{a->slope + b->slope, std::gcd(a->multiple, b->multiple), non_negative};
  case clang::BO_Sub:
    return Progression{a->slope - b->slope, std::gcd(a->multiple, b->multiple), false};
  case clang::BO_Mul: {
    const auto factor = constant_value(kernel_, left);
    if (a->slope != 0 && b->slope != 0) {
      return std::nullopt;
    }
    if ((a->slope != 0 && !constant) || (b->slope != 0 && !factor)) {
      return std::nullopt;
    }
    const std::int64_t slope = a->slope != 0   ? a->slope * *constant
                               : b->slope != 0 ? b->slope * *factor
                                               : 0;
    return Progression{slope, a->multiple * b->multiple, non_negative};
  }
  case clang::BO_Div:
    return !constant ? resting(*a, *b) : *constant > 0 ? divided(*a, *constant) : std::nullopt;
  case clang::BO_Rem:
    return !constant ? resting(*a, *b) : *constant > 0 ? remainder(*a, *constant) : std::nullopt;
  case clang::BO_LT:
  case clang::BO_GT:
  case clang::BO_LE:
  case clang::BO_GE:
    return resting(*a, *b);
  case clang::BO_Shl:
    return constant && *constant >= 0 && *constant < 31
               ? std::optional(
                     Progression{a->slope << *constant, a->multiple << *constant, a->non_negative})
               : std::nullopt;
  case clang::BO_Shr:
    return constant && *constant >= 0 && *constant < 31 ? divided(*a, std::int64_t{1} << *constant)
                                                        : std::nullopt;
  case clang::BO_And: // a power of two less one takes a remainder
    return constant && *constant >= 0 && std::has_single_bit(std::uint64_t(*constant) + 1)
               ? remainder(*a, *constant + 1)
               : std::nullopt;
  case clang::BO_Xor: // of whole groups it moves them and keeps what is in them
  case clang::BO_Or: {
    const bool whole = a->is_multiple_of(width_) && b->is_multiple_of(width_);
    const bool one_moves = (a->slope == 1 && b->slope == 0) || (a->slope == 0 && b->slope == 1);
    return (a->slope == 0 && b->slope == 0) || (one_moves && whole)
               ? std::optional(Progression{a->slope + b->slope, whole ? width_ : 1, non_negative})
               : std::nullopt;
  }
  default:
    return std::nullopt;
  }
}

std::optional<Progression> AffineView::element(const clang::ArraySubscriptExpr& place) const {
  const auto index = of(*place.getIdx());
  if (!index) {
    return std::nullopt;
  }
  const auto* decay = dyn_cast<clang::ImplicitCastExpr>(place.getBase()->IgnoreParens());
  if (decay == nullptr || decay->getCastKind() != clang::CK_ArrayToPointerDecay) {
    return is_named(*place.getBase()) ? index : std::nullopt;
  }
  const auto* outer = dyn_cast<clang::ArraySubscriptExpr>(decay->getSubExpr()->IgnoreParens());
  if (outer == nullptr) {
    return is_named(*decay->getSubExpr()) ? index : std::nullopt;
  }
  const auto row = element(*outer);
  const auto* array = kernel_.ast().getAsConstantArrayType(outer->getType());
  if (!row || array == nullptr) {
    return std::nullopt;
  }
  const std::int64_t extent = array->getSize().getSExtValue();
  return Progression{row->slope * extent + index->slope,
                     std::gcd(row->multiple * extent, index->multiple), false};
}

} // namespace evo
