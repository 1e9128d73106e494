#include "mutators/analysis/async_copies.hpp"

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

namespace evo {
namespace {

const clang::CallExpr* call_of(const clang::Stmt* statement, llvm::StringRef function) {
  const auto* call = llvm::dyn_cast_or_null<clang::CallExpr>(statement);
  const clang::FunctionDecl* callee = call == nullptr ? nullptr : call->getDirectCallee();
  return callee != nullptr && callee->getDeclName().isIdentifier() && callee->getName() == function
             ? call
             : nullptr;
}

} // namespace

const clang::CallExpr* async_copy(const clang::Stmt* statement) {
  return call_of(statement, "__pipeline_memcpy_async");
}

const clang::CallExpr* wait_for_copies(const clang::Stmt* statement) {
  return call_of(statement, "__pipeline_wait_prior");
}

} // namespace evo
