#include "mutators/analysis/thread_range.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/launches.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// The arguments of the dim3 that a launch's grid or block is converted to.
const clang::CXXConstructExpr* construction(const clang::Stmt* dimensions) {
  const auto* found = dyn_cast<clang::CXXConstructExpr>(dimensions);
  if (found != nullptr && found->getNumArgs() == 3) {
    return found;
  }
  for (const clang::Stmt* child : dimensions->children()) {
    if (child != nullptr && (found = construction(child)) != nullptr) {
      return found;
    }
  }
  return nullptr;
}

/// The most threads along an axis (0: x) in any launch of the function.
std::int64_t threads_along(const Kernel& kernel, const clang::FunctionDecl& function,
                           unsigned axis) {
  std::int64_t most = 0;
  for (const Launch& launch : find_launches(kernel)) {
    if (launch.kernel == &function) {
      const auto* block = construction(launch.block);
      const auto threads =
          block == nullptr ? std::nullopt : constant_value(kernel, *block->getArg(axis));
      most = std::max(most, threads.value_or(kernel.target().threads_per_block));
    }
  }
  return most == 0 ? kernel.target().threads_per_block : most;
}

/// threadIdx.x: 0; nullopt for another expression.
std::optional<unsigned> thread_axis(const clang::Expr* expr) {
  const auto* member = dyn_cast<clang::MemberExpr>(expr);
  const auto* base = member == nullptr
                         ? nullptr
                         : dyn_cast<clang::DeclRefExpr>(member->getBase()->IgnoreParenImpCasts());
  if (base == nullptr || base->getDecl()->getName() != "threadIdx") {
    return std::nullopt;
  }
  return dyn_cast<clang::FieldDecl>(member->getMemberDecl())->getFieldIndex();
}

/// Nothing overflows an int in a kernel that works, so only the signs matter here.
std::optional<Range> combine(clang::BinaryOperatorKind operation, Range a, Range b) {
  switch (operation) {
  case clang::BO_Add:
    return Range{a.least + b.least, a.greatest + b.greatest};
  case clang::BO_Mul:
    return Range{a.least * b.least, a.greatest * b.greatest};
  case clang::BO_Div:
    return b.least == 0 ? std::nullopt
                        : std::optional(Range{a.least / b.greatest, a.greatest / b.least});
  case clang::BO_Rem:
    return b.least == 0 ? std::nullopt
                        : std::optional(Range{0, std::min(a.greatest, b.greatest - 1)});
  case clang::BO_Shr:
    return b.greatest > 62 ? std::nullopt
                           : std::optional(Range{a.least >> b.greatest, a.greatest >> b.least});
  default:
    return std::nullopt;
  }
}

} // namespace

std::optional<Range> thread_range(const Kernel& kernel, const clang::FunctionDecl& function,
                                  const clang::Expr& expr) {
  if (const auto value = constant_value(kernel, expr)) {
    return *value < 0 ? std::nullopt : std::optional(Range{*value, *value});
  }
  const clang::Expr* bare = expr.IgnoreParenImpCasts();
  if (const auto axis = thread_axis(bare)) {
    return Range{0, threads_along(kernel, function, *axis) - 1};
  }
  if (const auto* reference = dyn_cast<clang::DeclRefExpr>(bare)) {
    const auto* variable = dyn_cast<clang::VarDecl>(reference->getDecl());
    const bool fixed = variable != nullptr && variable->getType().isConstQualified() &&
                       variable->getType()->isIntegerType() && variable->hasInit();
    return fixed ? thread_range(kernel, function, *variable->getInit()) : std::nullopt;
  }
  if (const auto* operation = dyn_cast<clang::BinaryOperator>(bare)) {
    const auto left = thread_range(kernel, function, *operation->getLHS());
    const auto right = thread_range(kernel, function, *operation->getRHS());
    return left && right ? combine(operation->getOpcode(), *left, *right) : std::nullopt;
  }
  return std::nullopt;
}

} // namespace evo
