#include "mutators/analysis/plain_assignment.hpp"

#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>

namespace evo {

std::optional<PlainAssignment> plain_assignment(const clang::Stmt* statement) {
  PlainAssignment result;
  if (const auto* assignment = clang::dyn_cast_or_null<clang::BinaryOperator>(statement)) {
    result = {assignment->getLHS(), assignment->getRHS()};
    if (assignment->getOpcode() != clang::BO_Assign) {
      return std::nullopt;
    }
  } else {
    const auto* call = clang::dyn_cast_or_null<clang::CXXOperatorCallExpr>(statement);
    if (call == nullptr || call->getOperator() != clang::OO_Equal || call->getNumArgs() != 2) {
      return std::nullopt;
    }
    result = {call->getArg(0), call->getArg(1)};
  }
  const clang::QualType type = result.place->getType();
  const clang::QualType value = result.value->IgnoreParenImpCasts()->getType();
  const bool same =
      value.getCanonicalType().getUnqualifiedType() == type.getCanonicalType().getUnqualifiedType();
  return same ? std::optional(result) : std::nullopt;
}

} // namespace evo
