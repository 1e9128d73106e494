#include "mutators/analysis/rounding.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <clang/AST/Attr.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/analysis/warp_products.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

/// The local scalar or array that an lvalue lies in; nullptr for other memory.
const clang::VarDecl* register_of(const clang::Expr* lvalue) {
  lvalue = lvalue->IgnoreParenImpCasts();
  if (const auto* element = dyn_cast<clang::ArraySubscriptExpr>(lvalue)) {
    return register_of(element->getBase());
  }
  if (const auto* member = dyn_cast<clang::MemberExpr>(lvalue)) {
    return member->isArrow() ? nullptr : register_of(member->getBase());
  }
  const auto* use = dyn_cast<clang::DeclRefExpr>(lvalue);
  const auto* variable = use == nullptr ? nullptr : dyn_cast<clang::VarDecl>(use->getDecl());
  const bool is_register =
      variable != nullptr && variable->isLocalVarDecl() && variable->hasLocalStorage() &&
      !variable->hasAttr<clang::CUDASharedAttr>() && !variable->getType()->isPointerType() &&
      !variable->getType()->isReferenceType();
  return is_register ? variable : nullptr;
}

class Products : public SyntaxVisitor {
public:
  explicit Products(const clang::Stmt& code) : code_(code) {}

  bool is_product(const clang::Expr* value) {
    value = value->IgnoreParenImpCasts();
    if (const auto* binary = dyn_cast<clang::BinaryOperator>(value)) {
      return binary->getOpcode() == clang::BO_Mul || binary->isAssignmentOp();
    }
    if (const auto* choice = dyn_cast<clang::ConditionalOperator>(value)) {
      return is_product(choice->getTrueExpr()) || is_product(choice->getFalseExpr());
    }
    if (const auto* unary = dyn_cast<clang::UnaryOperator>(value)) {
      return is_product(unary->getSubExpr());
    }
    if (const auto* list = dyn_cast<clang::InitListExpr>(value)) {
      return std::ranges::any_of(list->inits(),
                                 [&](const clang::Expr* init) { return is_product(init); });
    }
    if (const auto* call = dyn_cast<clang::CallExpr>(value)) {
      const clang::FunctionDecl* callee = call->getDirectCallee();
      return callee == nullptr || callee->getDefinition() != nullptr;
    }
    if (isa<clang::FloatingLiteral, clang::IntegerLiteral, clang::ImplicitValueInitExpr>(value)) {
      return false;
    }
    if (value->isLValue() && value->getType().isConstQualified() && register_of(value) == nullptr) {
      return false; // loaded from an input
    }
    const clang::VarDecl* variable = value->isLValue() ? register_of(value) : nullptr;
    return variable == nullptr || any_definition_is_product(variable);
  }

  bool VisitVarDecl(clang::VarDecl* variable) override {
    const clang::Expr* init = variable->getInit();
    const clang::QualType type = variable->getType();
    if (init != nullptr && variable == followed_) {
      found_ = found_ || is_product(init);
    } else if (init != nullptr && (type->isReferenceType() || type->isPointerType())) {
      found_ = found_ || register_of(init) == followed_; // an alias: not followed
    }
    return true;
  }
  bool VisitBinaryOperator(clang::BinaryOperator* assignment) override {
    if (assignment->isAssignmentOp() && register_of(assignment->getLHS()) == followed_) {
      found_ = found_ || assignment->getOpcode() == clang::BO_MulAssign ||
               (assignment->getOpcode() == clang::BO_Assign && is_product(assignment->getRHS()));
    }
    return true;
  }
  bool VisitCallExpr(clang::CallExpr* call) override { // by reference or as a pointer: not followed
    if (multiplies_matrices(*call)) {                  // what it leaves in its registers is a sum
      return true;
    }
    for (const clang::Expr* argument : call->arguments()) {
      const bool escapes = argument->isLValue() || argument->getType()->isPointerType();
      found_ = found_ || (escapes && register_of(argument) == followed_);
    }
    return true;
  }
  bool VisitUnaryOperator(clang::UnaryOperator* unary) override {
    found_ = found_ || (unary->getOpcode() == clang::UO_AddrOf &&
                        register_of(unary->getSubExpr()) == followed_);
    return true;
  }

private:
  bool any_definition_is_product(const clang::VarDecl* variable) {
    if (!seen_.insert(variable).second) {
      return false;
    }
    const clang::VarDecl* before = std::exchange(followed_, variable);
    const bool found_before = std::exchange(found_, false);
    TraverseStmt(const_cast<clang::Stmt*>(&code_));
    followed_ = before;
    return std::exchange(found_, found_before);
  }

  const clang::Stmt& code_;
  const clang::VarDecl* followed_ = nullptr;
  bool found_ = false;
  std::set<const clang::VarDecl*> seen_;
};

} // namespace

bool may_be_product(const clang::Expr& value, const clang::Stmt& code) {
  return Products(code).is_product(&value);
}

} // namespace evo
