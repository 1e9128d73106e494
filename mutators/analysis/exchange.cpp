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

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/evaluator.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/hinted_access.hpp"

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

bool may_overlap(const Memory& a, const Memory& b) {
  return a.space == Space::Unknown ||
         (a.space == Space::Shared && a.variable == b.variable &&
          (a.member == b.member || a.member == nullptr || b.member == nullptr ||
           a.member->getParent() != b.member->getParent()));
}

/// The first subscript of the array that a place is in, casts of its address included: [stage].
const clang::ArraySubscriptExpr* first_subscript(const clang::Expr* place) {
  place = place->IgnoreParenCasts();
  if (const auto* unary = dyn_cast<clang::UnaryOperator>(place)) {
    return first_subscript(unary->getSubExpr());
  }
  const auto* subscript = dyn_cast<clang::ArraySubscriptExpr>(place);
  const auto* outer = subscript == nullptr ? nullptr : first_subscript(subscript->getBase());
  return outer == nullptr ? subscript : outer;
}

/// The variables that an expression's value depends on, behind those that stay as defined.
void add_free_variables(const clang::Stmt& code, std::set<const clang::VarDecl*>& free) {
  const auto* reference = dyn_cast<clang::DeclRefExpr>(&code);
  const auto* variable =
      reference == nullptr ? nullptr : dyn_cast<clang::VarDecl>(reference->getDecl());
  if (variable != nullptr && variable->getType().isConstQualified() && variable->hasInit()) {
    add_free_variables(*variable->getInit(), free);
  } else if (reference != nullptr) {
    free.insert(variable);
  }
  for (const clang::Stmt* child : code.children()) {
    if (child != nullptr) {
      add_free_variables(*child, free);
    }
  }
}

/// Whether two subscripts of one array always differ: tried for every value of the one variable
/// that they depend on, which is one of the subscripts itself.
bool never_equal(const Kernel& kernel, const clang::ArraySubscriptExpr& a,
                 const clang::ArraySubscriptExpr& b) {
  const clang::Expr* array = a.getBase()->IgnoreParenImpCasts();
  const auto* type = kernel.ast().getAsConstantArrayType(array->getType());
  std::set<const clang::VarDecl*> free;
  add_free_variables(*a.getIdx(), free);
  add_free_variables(*b.getIdx(), free);
  const auto is_variable = [&](const clang::Expr* index) {
    const auto* reference = dyn_cast<clang::DeclRefExpr>(index->IgnoreParenImpCasts());
    return reference != nullptr && reference->getDecl() == *free.begin();
  };
  if (type == nullptr || free.size() != 1 || *free.begin() == nullptr ||
      !(is_variable(a.getIdx()) || is_variable(b.getIdx()))) {
    return false;
  }
  for (std::int64_t value = 0; value < type->getSize().getSExtValue(); ++value) {
    Evaluator evaluator(kernel, {{*free.begin(), value}});
    const auto left = evaluator.value(*a.getIdx());
    const auto right = evaluator.value(*b.getIdx());
    const auto* x = std::get_if<std::int64_t>(&left);
    const auto* y = std::get_if<std::int64_t>(&right);
    if (x == nullptr || y == nullptr || *x == *y) {
      return false;
    }
  }
  return true;
}

enum class Met { Nothing, Barrier, Access };

/// Looks along the statements around one that accesses shared memory at a place.
class ConflictSearch {
public:
  ConflictSearch(const Kernel& kernel, const clang::ArraySubscriptExpr& place)
      : kernel_(kernel), place_(place), memory_(memory_of(place)), stage_(first_subscript(&place)) {
  }

  bool is_alone(const clang::Stmt& statement, bool back);

private:
  Met first_met(const std::vector<const clang::Stmt*>& statements);
  bool is_other_stage(const MemoryAccess& access) const;

  const Kernel& kernel_;
  const clang::ArraySubscriptExpr& place_;
  const Memory memory_;
  const clang::ArraySubscriptExpr* stage_; // nullptr: stages cannot be compared any more
};

bool ConflictSearch::is_other_stage(const MemoryAccess& access) const {
  const auto* stage = access.place == nullptr ? nullptr : first_subscript(access.place);
  return stage_ != nullptr && stage != nullptr && stage_ != &place_ && access.memory == memory_ &&
         never_equal(kernel_, *stage_, *stage);
}

/// What comes first in whole statements. A barrier inside one does not count.
Met ConflictSearch::first_met(const std::vector<const clang::Stmt*>& statements) {
  for (const clang::Stmt* statement : statements) {
    const Accesses accesses = accesses_of(*statement);
    if (accesses.barriers.size() == 1 && accesses.barriers.front() == statement) {
      return Met::Barrier;
    }
    if (accesses.opaque != nullptr ||
        std::ranges::any_of(accesses.list, [&](const MemoryAccess& access) {
          return may_overlap(access.memory, memory_) && !is_other_stage(access);
        })) {
      return Met::Access;
    }
    std::set<const clang::VarDecl*> deciding_stage;
    if (stage_ != nullptr) {
      add_free_variables(*stage_->getIdx(), deciding_stage);
    }
    if (std::ranges::any_of(accesses.list, [&](const MemoryAccess& access) {
          return access.writes && deciding_stage.contains(access.memory.variable);
        })) {
      stage_ = nullptr;
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
bool ConflictSearch::is_alone(const clang::Stmt& statement, bool back) {
  const clang::Stmt* inner = &statement;
  for (const clang::Stmt* around = parent_of(kernel_, *inner); around != nullptr;
       inner = around, around = parent_of(kernel_, *around)) {
    if (const auto* braces = dyn_cast<clang::CompoundStmt>(around)) {
      const Met met = first_met(neighbours(*braces, *inner, back));
      if (met != Met::Nothing) {
        return met == Met::Barrier;
      }
    } else if (const clang::Stmt* body = loop_body(*around)) {
      if (first_met(around_again(*body, statement, back)) == Met::Access) {
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
  if (const auto* call = dyn_cast<clang::CallExpr>(&expression)) {
    return hinted_load(call).has_value() && holds(*call->getArg(0));
  }
  return std::ranges::all_of(expression.children(), [&](const clang::Stmt* child) {
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
                               const clang::ArraySubscriptExpr& place) {
  return reached_by_all(kernel, statement) &&
         ConflictSearch(kernel, place).is_alone(statement, true) &&
         ConflictSearch(kernel, place).is_alone(statement, false);
}

} // namespace evo
