#include "fitness/policy/streams.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/ExprCXX.h>

namespace evo::policy {
namespace {

using llvm::dyn_cast;
using llvm::isa;

bool is_stream(clang::QualType type) {
  const auto* pointer = type.getNonReferenceType()->getAs<clang::PointerType>();
  const auto* record =
      pointer != nullptr ? pointer->getPointeeType()->getAs<clang::RecordType>() : nullptr;
  return record != nullptr && record->getDecl()->getName() == "CUstream_st";
}

/// A stream, or a pointer to or an array of streams.
bool holds_stream(clang::QualType type) {
  while (!is_stream(type)) {
    const clang::QualType inner = type->isArrayType()
                                      ? clang::QualType(type->getArrayElementTypeNoTypeQual(), 0)
                                      : type.getNonReferenceType()->getPointeeType();
    if (inner.isNull()) {
      return false;
    }
    type = inner;
  }
  return true;
}

Finding other_stream() {
  return {"uses a stream that is not the entry's", "pass the entry's stream parameter on by name"};
}

/// What keeps a stream what it is.
bool passes_on(const clang::Expr& expression) {
  if (const auto* cast = dyn_cast<clang::CastExpr>(&expression)) {
    return (cast->getCastKind() == clang::CK_LValueToRValue ||
            cast->getCastKind() == clang::CK_NoOp || cast->getCastKind() == clang::CK_Dependent);
  }
  if (const auto* list = dyn_cast<clang::InitListExpr>(&expression)) {
    return list->getNumInits() == 1;
  }
  return isa<clang::DeclRefExpr, clang::ParenExpr, clang::ParenListExpr,
             clang::MaterializeTemporaryExpr, clang::ExprWithCleanups, clang::CXXDefaultArgExpr>(
      expression); // a default argument's own expression is checked like any other
}

} // namespace

std::optional<Finding> check_stream(const clang::Expr& expression) {
  if (is_stream(expression.getType())) {
    return passes_on(expression) ? std::nullopt : std::optional(other_stream());
  }
  const auto* cast = dyn_cast<clang::CastExpr>(&expression);
  if (cast != nullptr && holds_stream(cast->getSubExpr()->getType()) &&
      cast->getCastKind() != clang::CK_ToVoid && cast->getCastKind() != clang::CK_Dependent) {
    return Finding{"reads a stream as something else", "pass it on as it is"};
  }
  return holds_stream(expression.getType()) ? std::optional(other_stream()) : std::nullopt;
}

std::optional<Finding> check_stream(const clang::VarDecl& variable) {
  if (!holds_stream(variable.getType())) {
    return std::nullopt;
  }
  const bool named = is_stream(variable.getType()) &&
                     (isa<clang::ParmVarDecl>(variable) || variable.getInit() != nullptr);
  return named ? std::nullopt : std::optional(other_stream());
}

std::optional<Finding> check_stream(const clang::FieldDecl& field) {
  const auto* record = dyn_cast<clang::CXXRecordDecl>(field.getParent());
  const bool captured = record != nullptr && record->isLambda();
  return captured || !holds_stream(field.getType())
             ? std::nullopt
             : std::optional(Finding{"keeps a stream in a member", "pass it on as a parameter"});
}

} // namespace evo::policy
