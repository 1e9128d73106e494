#include "mutators/analysis/exchange.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/expressions.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

/// What decides whether and how often the children of `statement` run.
std::vector<const clang::Stmt*> deciding(const clang::Stmt& statement) {
  if (const auto* branch = dyn_cast<clang::IfStmt>(&statement)) {
    return {branch->getCond()};
  }
  if (const auto* loop = dyn_cast<clang::ForStmt>(&statement)) {
    return {loop->getCond()};
  }
  if (const auto* loop = dyn_cast<clang::WhileStmt>(&statement)) {
    return {loop->getCond()};
  }
  if (isa<clang::CompoundStmt, clang::DeclStmt, clang::Expr, clang::AttributedStmt>(statement)) {
    return {};
  }
  return {nullptr}; // not followed
}

enum class Met { Nothing, Barrier, Access };

bool may_overlap(const Memory& a, const Memory& b) {
  return a.space == Space::Unknown ||
         (a.space == Space::Shared && a.variable == b.variable &&
          (a.member == b.member || a.member == nullptr || b.member == nullptr ||
           a.member->getParent() != b.member->getParent()));
}

/// What comes first in whole statements. A barrier inside one does not count.
template <typename Statements> Met first_met(const Statements& statements, const Memory& memory) {
  for (const clang::Stmt* statement : statements) {
    const Accesses accesses = accesses_of(*statement);
    if (accesses.barriers.size() == 1 && accesses.barriers.front() == statement) {
      return Met::Barrier;
    }
    if (accesses.opaque != nullptr ||
        std::ranges::any_of(accesses.list, [&](const MemoryAccess& access) {
          return may_overlap(access.memory, memory);
        })) {
      return Met::Access;
    }
  }
  return Met::Nothing;
}

/// The statements behind `inner` in the same braces, nearest first; those before it if `back`.
std::vector<const clang::Stmt*> neighbours(const clang::CompoundStmt& braces,
                                           const clang::Stmt& inner, bool back) {
  std::vector<const clang::Stmt*> all(braces.body_begin(), braces.body_end());
  if (back) {
    std::ranges::reverse(all);
  }
  all.erase(all.begin(), std::ranges::find(all, &inner) + 1);
  return all;
}

/// The statements that the next iteration begins with; that the one before ended with, if `back`.
std::vector<const clang::Stmt*> around_again(const clang::Stmt& body, const clang::Stmt& inner,
                                             bool back) {
  const auto* braces = dyn_cast<clang::CompoundStmt>(&body);
  if (braces == nullptr || &body == &inner) {
    return {};
  }
  std::vector<const clang::Stmt*> all(braces->body_begin(), braces->body_end());
  if (back) {
    std::ranges::reverse(all);
  }
  all.erase(std::ranges::find_if(all, [&](const auto* s) { return contains(*s, inner); }),
            all.end());
  return all;
}

const clang::Stmt* loop_body(const clang::Stmt& statement) {
  if (const auto* loop = dyn_cast<clang::ForStmt>(&statement)) {
    return loop->getBody();
  }
  const auto* loop = dyn_cast<clang::WhileStmt>(&statement);
  return loop == nullptr ? nullptr : loop->getBody();
}

/// Goes on from `statement` until a barrier or the end of the kernel.
bool is_alone(const Kernel& kernel, const clang::Stmt& statement, const Memory& memory, bool back) {
  const clang::Stmt* inner = &statement;
  for (const clang::Stmt* around = parent_of(kernel, *inner); around != nullptr;
       inner = around, around = parent_of(kernel, *around)) {
    if (const auto* braces = dyn_cast<clang::CompoundStmt>(around)) {
      const Met met = first_met(neighbours(*braces, *inner, back), memory);
      if (met != Met::Nothing) {
        return met == Met::Barrier;
      }
    } else if (const clang::Stmt* body = loop_body(*around)) {
      if (first_met(around_again(*body, statement, back), memory) == Met::Access) {
        return false;
      }
    }
  }
  return true;
}

/// Whether everything around `statement` takes all threads to it.
bool reached_by_all(const Kernel& kernel, const clang::Stmt& statement) {
  Uniformity uniform(kernel);
  for (const clang::Stmt* around = parent_of(kernel, statement); around != nullptr;
       around = parent_of(kernel, *around)) {
    const auto conditions = deciding(*around);
    if (std::ranges::any_of(conditions, [&](const clang::Stmt* condition) {
          return condition == nullptr || !uniform.holds(*condition);
        })) {
      return false;
    }
  }
  return true;
}

} // namespace

bool Uniformity::holds(const clang::Stmt& expression) {
  if (const auto* reference = dyn_cast<clang::DeclRefExpr>(&expression)) {
    const auto* variable = dyn_cast<clang::VarDecl>(reference->getDecl());
    return variable != nullptr && holds(*variable);
  }
  return !isa<clang::CallExpr>(expression) &&
         std::ranges::all_of(expression.children(), [&](const clang::Stmt* child) {
           return child == nullptr || holds(*child);
         });
}

bool Uniformity::holds(const clang::VarDecl& variable) {
  if (!known_.insert(&variable).second) {
    return true;
  }
  if (variable.hasAttr<clang::CUDASharedAttr>()) {
    return true;
  }
  if (variable.hasGlobalStorage()) {
    const auto& sources = kernel_.ast().getSourceManager();
    const bool builtin = !sources.isInMainFile(sources.getExpansionLoc(variable.getLocation()));
    return builtin ? variable.getName() != "threadIdx" : variable.getType().isConstQualified();
  }
  const auto* function = dyn_cast<clang::FunctionDecl>(variable.getDeclContext());
  const bool reference = variable.getType()->isReferenceType();
  return function != nullptr && (reference || variable.getType()->isScalarType()) &&
         (variable.getInit() == nullptr || holds(*variable.getInit())) &&
         (reference || stays_uniform(*function->getBody(), variable, true));
}

/// Whether every change of the variable in `code` gives it a uniform value in all threads.
bool Uniformity::stays_uniform(const clang::Stmt& code, const clang::VarDecl& variable,
                               bool uniform_flow) {
  if (!may_change(code, variable)) {
    return true;
  }
  const auto* assignment = dyn_cast<clang::BinaryOperator>(&code);
  if (assignment != nullptr && assignment->isAssignmentOp() &&
      isa<clang::DeclRefExpr>(assignment->getLHS()->IgnoreParens())) {
    return uniform_flow && holds(*assignment->getRHS());
  }
  const auto* step = dyn_cast<clang::UnaryOperator>(&code);
  if (step != nullptr && step->isIncrementDecrementOp()) {
    return uniform_flow;
  }
  if (isa<clang::DeclRefExpr>(code)) {
    return false; // its address, or a reference to it
  }
  const auto conditions = deciding(code);
  const bool flows = uniform_flow && std::ranges::all_of(conditions, [&](const clang::Stmt* c) {
                       return c != nullptr && holds(*c);
                     });
  return std::ranges::all_of(code.children(), [&](const clang::Stmt* child) {
    return child == nullptr || stays_uniform(*child, variable, flows);
  });
}

bool is_alone_between_barriers(const Kernel& kernel, const clang::Stmt& statement,
                               const Memory& memory) {
  return reached_by_all(kernel, statement) && is_alone(kernel, statement, memory, true) &&
         is_alone(kernel, statement, memory, false);
}

} // namespace evo
