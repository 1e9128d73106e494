#include "mutators/analysis/counted_loop.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ParentMapContext.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/expressions.hpp"

namespace evo {
namespace {

/// The step of `counter += step`, `counter = counter + step`; {true, nullptr} for ++.
struct Increment {
  bool valid = false;
  const clang::Expr* step = nullptr;
};

Increment increment_of(const clang::Expr* expr, const clang::VarDecl* counter) {
  if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(expr)) {
    return {unary->isIncrementOp() && variable_of(unary->getSubExpr()) == counter};
  }
  const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(expr);
  if (binary == nullptr || variable_of(binary->getLHS()) != counter) {
    return {};
  }
  if (binary->getOpcode() == clang::BO_AddAssign) {
    return {true, binary->getRHS()};
  }
  const auto* sum = llvm::dyn_cast<clang::BinaryOperator>(binary->getRHS()->IgnoreParenImpCasts());
  if (binary->getOpcode() == clang::BO_Assign && sum != nullptr &&
      sum->getOpcode() == clang::BO_Add && variable_of(sum->getLHS()) == counter) {
    return {true, sum->getRHS()};
  }
  return {};
}

} // namespace

std::optional<std::int64_t> constant_value(const Kernel& kernel, const clang::Expr& expr) {
  clang::Expr::EvalResult result;
  if (expr.isValueDependent() || !expr.EvaluateAsInt(result, kernel.ast())) {
    return std::nullopt;
  }
  return result.Val.getInt().getExtValue();
}

bool mentions(const clang::Stmt& statement, const clang::VarDecl& variable) {
  if (const auto* reference = llvm::dyn_cast<clang::DeclRefExpr>(&statement)) {
    return reference->getDecl() == &variable;
  }
  return std::ranges::any_of(statement.children(), [&](const clang::Stmt* child) {
    return child != nullptr && mentions(*child, variable);
  });
}

bool may_change(const clang::Stmt& statement, const clang::VarDecl& variable) {
  const auto* cast = llvm::dyn_cast<clang::ImplicitCastExpr>(&statement);
  if (cast != nullptr && cast->getCastKind() == clang::CK_LValueToRValue &&
      variable_of(cast->getSubExpr()) == &variable) {
    return false;
  }
  // Every other way to name it is an assignment, an address or a reference.
  if (const auto* reference = llvm::dyn_cast<clang::DeclRefExpr>(&statement)) {
    return reference->getDecl() == &variable;
  }
  return std::ranges::any_of(statement.children(), [&](const clang::Stmt* child) {
    return child != nullptr && may_change(*child, variable);
  });
}

std::optional<CountedLoop> counted_loop(const Kernel& kernel, const clang::ForStmt& loop) {
  const auto* header = llvm::dyn_cast_or_null<clang::DeclStmt>(loop.getInit());
  const auto* condition = llvm::dyn_cast_or_null<clang::BinaryOperator>(loop.getCond());
  if (header == nullptr || !header->isSingleDecl() || condition == nullptr ||
      loop.getInc() == nullptr || condition->getOpcode() != clang::BO_LT) {
    return std::nullopt;
  }
  const auto* counter = llvm::dyn_cast<clang::VarDecl>(header->getSingleDecl());
  if (counter == nullptr || counter->getInit() == nullptr || !counter->getType()->isIntegerType() ||
      variable_of(condition->getLHS()) != counter || mentions(*condition->getRHS(), *counter) ||
      may_change(*loop.getBody(), *counter)) {
    return std::nullopt;
  }
  const Increment increment = increment_of(loop.getInc(), counter);
  const auto step = increment.step == nullptr ? 1 : constant_value(kernel, *increment.step);
  if (!increment.valid || !step || *step <= 0) {
    return std::nullopt;
  }
  return CountedLoop{&loop,          counter, counter->getInit(), condition->getRHS(),
                     increment.step, *step};
}

std::optional<CountedLoop> loop_of_counter(const Kernel& kernel, const clang::VarDecl& variable) {
  const auto definitions = kernel.ast().getParents(variable);
  const auto* definition = definitions.empty() ? nullptr : definitions[0].get<clang::DeclStmt>();
  const auto* loop = definition == nullptr
                         ? nullptr
                         : llvm::dyn_cast_or_null<clang::ForStmt>(parent_of(kernel, *definition));
  return loop != nullptr && loop->getInit() == definition ? counted_loop(kernel, *loop)
                                                          : std::nullopt;
}

} // namespace evo
