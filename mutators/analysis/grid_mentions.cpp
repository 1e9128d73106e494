#include "mutators/analysis/grid_mentions.hpp"

#include <algorithm>

#include <clang/AST/Decl.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

class GridVisitor : public SyntaxVisitor {
public:
  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
    const auto* variable = dyn_cast<clang::VarDecl>(use->getDecl());
    if (variable != nullptr && variable->hasGlobalStorage()) {
      if (variable->getName() == "blockIdx") {
        found.block = variable;
        ++found.block_uses;
      }
      if (variable->getName() == "gridDim") {
        found.grid = variable;
        ++found.grid_uses;
      }
    }
    return true;
  }
  bool VisitMemberExpr(clang::MemberExpr* member) override {
    const auto* base = dyn_cast<clang::DeclRefExpr>(member->getBase()->IgnoreParenImpCasts());
    if (base != nullptr && base->getDecl()->getName() == "blockIdx") {
      found.components.push_back(member);
    }
    if (base != nullptr && base->getDecl()->getName() == "gridDim") {
      found.grid_components.push_back(member);
    }
    return true;
  }

  GridMentions found;
};

class SidesVisitor : public SyntaxVisitor {
public:
  bool VisitCXXTemporaryObjectExpr(clang::CXXTemporaryObjectExpr* extent) override {
    if (extent->getNumArgs() > 1 && !clang::isa<clang::CXXDefaultArgExpr>(extent->getArg(1))) {
      found = {extent->getArg(0), extent->getArg(1)};
    }
    return false;
  }

  GridSides found;
};

} // namespace

GridMentions grid_mentions(const clang::FunctionDecl& function) {
  GridVisitor visitor;
  visitor.TraverseStmt(function.getBody());
  return std::move(visitor.found);
}

bool only_kernels_ask(const Kernel& kernel, const clang::VarDecl& builtin) {
  const auto uses = references(kernel, builtin);
  const auto launches = find_launches(kernel);
  return uses && std::ranges::all_of(*uses, [&](const Span& use) {
           return std::ranges::any_of(launches, [&](const Launch& launch) {
             const auto body = span_of(kernel, *launch.kernel->getBody());
             return body && body->contains(use.begin);
           });
         });
}

std::optional<unsigned> begin_of_first_use(const Kernel& kernel,
                                           const clang::FunctionDecl& function,
                                           const clang::VarDecl& block) {
  for (const clang::Stmt* statement : function.getBody()->children()) {
    if (mentions(*statement, block)) {
      const auto span = span_of(kernel, *statement);
      return span ? std::optional(span->begin) : std::nullopt;
    }
  }
  return std::nullopt;
}

GridSides grid_sides(const clang::Expr& grid) {
  SidesVisitor visitor;
  visitor.TraverseStmt(const_cast<clang::Expr*>(&grid));
  return visitor.found;
}

} // namespace evo
