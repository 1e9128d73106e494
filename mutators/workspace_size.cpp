#include "mutators/workspace_size.hpp"

#include <algorithm>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

namespace evo {

using clang::dyn_cast;

const clang::Expr* bytes_returned(const clang::FunctionDecl& workspace) {
  const auto* body = dyn_cast<clang::CompoundStmt>(workspace.getBody());
  const auto* bytes = body != nullptr && body->size() == 1
                          ? dyn_cast<clang::ReturnStmt>(body->body_front())
                          : nullptr;
  return bytes == nullptr ? nullptr : bytes->getRetValue();
}

const clang::ParmVarDecl* parameter_of_workspace(const clang::FunctionDecl& entry,
                                                 const clang::FunctionDecl& workspace,
                                                 const clang::ParmVarDecl& parameter) {
  const auto before = std::ranges::count_if(entry.parameters(), [&](const auto* other) {
    return other->getType()->isIntegerType() &&
           other->getFunctionScopeIndex() < parameter.getFunctionScopeIndex();
  });
  return before < workspace.getNumParams() ? workspace.getParamDecl(static_cast<unsigned>(before))
                                           : nullptr;
}

} // namespace evo
