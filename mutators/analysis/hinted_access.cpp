#include "mutators/analysis/hinted_access.hpp"

#include <algorithm>
#include <initializer_list>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

namespace evo {
namespace {

/// The call if a statement is one of these functions; else nullptr.
const clang::CallExpr* call_of_any(std::initializer_list<llvm::StringRef> functions,
                                   const clang::Stmt* statement) {
  const auto* call = llvm::dyn_cast_or_null<clang::CallExpr>(statement);
  const clang::FunctionDecl* callee = call == nullptr ? nullptr : call->getDirectCallee();
  return callee != nullptr && callee->getDeclName().isIdentifier() &&
                 std::ranges::count(functions, callee->getName()) != 0
             ? call
             : nullptr;
}

const clang::Expr* place_behind(const clang::Expr* pointer) {
  const auto* address = llvm::dyn_cast<clang::UnaryOperator>(pointer->IgnoreParenImpCasts());
  return address != nullptr && address->getOpcode() == clang::UO_AddrOf
             ? address->getSubExpr()->IgnoreParens()
             : pointer;
}

} // namespace

std::optional<HintedStore> hinted_store(const clang::Stmt* statement) {
  const auto* call = call_of_any({"__stcs", "__stcg"}, statement);
  return call == nullptr
             ? std::nullopt
             : std::optional(HintedStore{call, place_behind(call->getArg(0)), call->getArg(1)});
}

std::optional<HintedLoad> hinted_load(const clang::Expr* expr) {
  const auto* call = call_of_any({"__ldg", "__ldcs", "__ldcg"}, expr->IgnoreParens());
  return call == nullptr ? std::nullopt
                         : std::optional(HintedLoad{call, place_behind(call->getArg(0))});
}

} // namespace evo
