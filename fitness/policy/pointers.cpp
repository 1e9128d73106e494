#include "fitness/policy/pointers.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/ParentMapContext.h>

namespace evo::policy {
namespace {

using llvm::dyn_cast;

constexpr std::int64_t largest_alignment = 4096;

/// The type behind all pointers, references and arrays.
clang::QualType innermost(clang::QualType type) {
  for (;;) {
    clang::QualType inner;
    if (const auto* array = type->getAsArrayTypeUnsafe()) {
      inner = array->getElementType();
    } else {
      inner = type->getPointeeType();
    }
    if (inner.isNull()) {
      return type;
    }
    type = inner;
  }
}

bool points_to_function(clang::QualType type) {
  return !type->isFunctionType() && innermost(type)->isFunctionType();
}

bool holds_pointer(clang::QualType type) {
  type = type->getBaseElementTypeUnsafe()->getCanonicalTypeInternal();
  if (const auto* record = type->getAsRecordDecl()) {
    return std::ranges::any_of(record->fields(), [](const clang::FieldDecl* field) {
      return holds_pointer(field->getType());
    });
  }
  return type->isAnyPointerType() || type->isMemberPointerType() || type->isReferenceType();
}

bool forges_function(const clang::CastExpr& cast) {
  switch (cast.getCastKind()) {
  case clang::CK_BitCast:
  case clang::CK_LValueBitCast:
  case clang::CK_LValueToRValueBitCast:
  case clang::CK_IntegralToPointer:
    return points_to_function(cast.getType());
  case clang::CK_ReinterpretMemberPointer:
    return true;
  default:
    return false;
  }
}

std::optional<std::int64_t> value_of(const clang::Expr& expression, const clang::ASTContext& ast) {
  clang::Expr::EvalResult result;
  if (expression.isValueDependent() || !expression.EvaluateAsInt(result, ast)) {
    return std::nullopt;
  }
  return result.Val.getInt().getExtValue();
}

/// x % 16, x & 15 and x & ~15.
bool asks_for_alignment(const clang::BinaryOperator& operation, const clang::ASTContext& ast) {
  const auto value = value_of(*operation.getRHS(), ast);
  if (!value) {
    return operation.getRHS()->isValueDependent();
  }
  const std::int64_t mask = *value < 0 ? ~*value : *value;
  return (operation.getOpcode() == clang::BO_Rem && *value <= largest_alignment) ||
         (operation.getOpcode() == clang::BO_And && mask < largest_alignment);
}

/// What an expression is an operand of, or nullptr for a statement's own.
const clang::Expr* parent_of(const clang::Expr& expression, const clang::ASTContext& ast) {
  auto& parents = const_cast<clang::ASTContext&>(ast).getParentMapContext();
  const auto above = parents.getParents(expression);
  return above.empty() ? nullptr : above[0].get<clang::Expr>();
}

/// Whether all that becomes of a pointer's number is a question about its alignment.
bool is_alignment(const clang::Expr& number, const clang::ASTContext& ast) {
  const clang::Expr* expression = &number;
  for (;;) {
    const clang::Expr* parent = parent_of(*expression, ast);
    if (parent == nullptr) {
      return false;
    }
    if (const auto* operation = dyn_cast<clang::BinaryOperator>(parent)) {
      if (operation->getLHS() == expression && asks_for_alignment(*operation, ast)) {
        return true;
      }
      if (operation->getOpcode() != clang::BO_Or && operation->getOpcode() != clang::BO_Add) {
        return false;
      }
    } else if (!llvm::isa<clang::ParenExpr, clang::CastExpr>(parent)) {
      return false;
    }
    expression = parent;
  }
}

/// A variable in device memory: a local one counts where device code holds it.
bool lies_in_device_memory(const clang::VarDecl& variable) {
  const auto* device = variable.getAttr<clang::CUDADeviceAttr>();
  return variable.hasGlobalStorage() && !variable.getType()->isDependentType() &&
         !variable.hasAttr<clang::CUDASharedAttr>() &&
         (variable.isStaticLocal() || (device != nullptr && !device->isImplicit()));
}

/// Whether the value of a constant, of its element or its member is all that is used. In a template
/// its instantiations tell.
bool is_only_read(const clang::DeclRefExpr& name, const clang::ASTContext& ast) {
  for (const clang::Expr* place = &name;;) {
    const clang::Expr* parent = parent_of(*place, ast);
    const auto* cast = llvm::dyn_cast_or_null<clang::CastExpr>(parent);
    const bool read = cast != nullptr && cast->getCastKind() == clang::CK_LValueToRValue;
    if (read || (parent != nullptr && parent->isTypeDependent())) {
      return true;
    }
    const bool decays = cast != nullptr && cast->getCastKind() == clang::CK_ArrayToPointerDecay;
    const auto* subscript = llvm::dyn_cast_or_null<clang::ArraySubscriptExpr>(parent);
    const bool element = subscript != nullptr && subscript->getBase() == place;
    if (!decays && !element &&
        !llvm::isa_and_nonnull<clang::ParenExpr, clang::MemberExpr>(parent)) {
      return false;
    }
    place = parent;
  }
}

/// A number that was a pointer before.
bool was_pointer(const clang::Stmt* number) {
  if (const auto* cast = llvm::dyn_cast_or_null<clang::CastExpr>(number);
      cast != nullptr && cast->getCastKind() == clang::CK_PointerToIntegral) {
    return true;
  }
  return number != nullptr && std::ranges::any_of(number->children(), was_pointer);
}

bool is_pointer_to_pointer(const clang::Expr& expression) {
  const clang::QualType type = expression.getType();
  return expression.isGLValue() ? type->isPointerType()
                                : type->isPointerType() && type->getPointeeType()->isPointerType();
}

std::optional<Finding> check_host_cast(const clang::CastExpr& cast, const clang::ASTContext& ast) {
  const clang::Expr& operand = *cast.getSubExpr();
  switch (cast.getCastKind()) {
  case clang::CK_PointerToIntegral:
    if (is_alignment(cast, ast)) {
      return std::nullopt;
    }
    return Finding{"reads a pointer as a number",
                   "ask only for its alignment, as in reinterpret_cast<uintptr_t>(p) % 16"};
  case clang::CK_IntegralToPointer:
    if (was_pointer(&operand)) {
      return std::nullopt;
    }
    return Finding{"makes a pointer of a number", "start from a parameter"};
  case clang::CK_BitCast:
  case clang::CK_LValueBitCast:
  case clang::CK_LValueToRValueBitCast:
    if (!is_pointer_to_pointer(operand)) {
      return std::nullopt;
    }
    return Finding{"reads the bytes of a pointer", "use the pointer itself"};
  default:
    return std::nullopt;
  }
}

bool is_null(const clang::Expr& expression, const clang::ASTContext& ast) {
  return expression.isNullPointerConstant(const_cast<clang::ASTContext&>(ast),
                                          clang::Expr::NPC_ValueDependentIsNotNull) !=
         clang::Expr::NPCK_NotNull;
}

bool relates_pointers(const clang::BinaryOperator& operation, const clang::ASTContext& ast) {
  return (operation.isComparisonOp() || operation.getOpcode() == clang::BO_Sub) &&
         operation.getLHS()->getType()->isPointerType() &&
         operation.getRHS()->getType()->isPointerType() && !is_null(*operation.getLHS(), ast) &&
         !is_null(*operation.getRHS(), ast);
}

} // namespace

std::optional<Finding> check_pointer(const clang::Expr& expression, bool on_host,
                                     const clang::ASTContext& ast) {
  if (const auto* cast = dyn_cast<clang::CastExpr>(&expression)) {
    if (forges_function(*cast)) {
      return Finding{"makes a pointer to a function of something else",
                     "name the function that is meant"};
    }
    return on_host ? check_host_cast(*cast, ast) : std::nullopt;
  }
  const auto* operation = dyn_cast<clang::BinaryOperator>(&expression);
  if (on_host && operation != nullptr && relates_pointers(*operation, ast)) {
    return Finding{"compares two pointers", "decide by the dims"};
  }
  return std::nullopt;
}

std::optional<Finding> check_device_constant(const clang::DeclRefExpr& name,
                                             const clang::ASTContext& ast) {
  const auto* variable = dyn_cast<clang::VarDecl>(name.getDecl());
  if (variable == nullptr || !lies_in_device_memory(*variable) || is_only_read(name, ast)) {
    return std::nullopt;
  }
  return Finding{"takes the address of the constant '" + variable->getNameAsString() + "'",
                 "read its elements, or make it __constant__ const"};
}

std::optional<Finding> check_pointer_member(const clang::FieldDecl& field) {
  if (points_to_function(field.getType())) {
    return Finding{"keeps a pointer to a function in a member", "call the function by its name"};
  }
  if (field.getParent()->isUnion() && holds_pointer(field.getType())) {
    return Finding{"has a pointer in a union", "use a structure"};
  }
  return std::nullopt;
}

} // namespace evo::policy
