#include "mutators/register_copy.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/conditions.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;
using clang::isa_and_nonnull;

/// The assignment and the guards around an element; no assignment: none that copies it.
RegisterCopy copy_around(const Kernel& kernel, const clang::Expr& element) {
  RegisterCopy copy;
  const clang::Stmt* inner = &element;
  const clang::Stmt* around = parent_of(kernel, element);
  std::vector<Condition> guards;
  for (; around != nullptr; inner = around, around = parent_of(kernel, *around)) {
    const auto* choice = dyn_cast<clang::ConditionalOperator>(around);
    if (choice != nullptr && choice->getTrueExpr() == inner) {
      guards.push_back({choice->getCond(), true});
    } else if (!isa<clang::ImplicitCastExpr, clang::ParenExpr>(around)) {
      break;
    }
  }
  for (const Condition& guard : conjuncts(guards)) {
    if (!guard.holds) {
      return {};
    }
    copy.guards.push_back(guard.expression);
  }
  const auto* assignment = clang::dyn_cast_or_null<clang::BinaryOperator>(around);
  const bool copies =
      assignment != nullptr && assignment->getOpcode() == clang::BO_Assign &&
      assignment->getRHS() == inner && memory_of(*assignment->getLHS()).space == Space::Register &&
      kernel.ast().hasSameUnqualifiedType(assignment->getLHS()->getType(), element.getType());
  copy.assignment = copies ? assignment : nullptr;
  return copy;
}

/// The loop of which the copy is the whole body; nullptr without one.
const clang::ForStmt* loop_around(const Kernel& kernel, const clang::Stmt& assignment) {
  const clang::Stmt* around = parent_of(kernel, assignment);
  const auto* braces = clang::dyn_cast_or_null<clang::CompoundStmt>(around);
  return clang::dyn_cast_or_null<clang::ForStmt>(
      braces != nullptr && braces->size() == 1 ? parent_of(kernel, *braces) : around);
}

/// The counter of a loop that steps by 1 in its last round.
std::string last_round(const Kernel& kernel, const CountedLoop& loop) {
  const bool is_literal = isa<clang::IntegerLiteral>(loop.limit->IgnoreParenImpCasts());
  return is_literal ? std::to_string(*constant_value(kernel, *loop.limit) - 1)
                    : "(" + text_of(kernel, *loop.limit) + " - 1)";
}

std::string text_in_round(const Kernel& kernel, const clang::Expr& expr,
                          const clang::VarDecl& counter, const std::string& round) {
  std::vector<Edit> edits;
  class Uses : public SyntaxVisitor {
  public:
    bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
      list.push_back(use);
      return true;
    }
    std::vector<const clang::DeclRefExpr*> list;
  } uses;
  uses.TraverseStmt(const_cast<clang::Expr*>(&expr));
  for (const clang::DeclRefExpr* use : uses.list) {
    if (use->getDecl() == &counter) {
      const Span span = checked(span_of(kernel, use->getSourceRange()));
      edits.push_back({span.begin, span.length(), round});
    }
  }
  return render(kernel, checked(span_of(kernel, expr.getSourceRange())), edits);
}

} // namespace

std::set<Part> RegisterCopy::varies(const ElementRead& read) const {
  std::set<Part> result{Part::Element};
  if (!loop || mentions(*read.index.row, *loop->counter)) {
    result.insert(Part::Row);
  }
  if (!loop || std::ranges::any_of(read.index.column, [&](const clang::Expr* summand) {
        return mentions(*summand, *loop->counter);
      })) {
    result.insert(Part::Column);
  }
  return result;
}

std::optional<RegisterCopy> register_copy(const Kernel& kernel, const clang::Expr& element) {
  RegisterCopy copy = copy_around(kernel, element);
  if (copy.assignment == nullptr) {
    return std::nullopt;
  }
  const clang::ForStmt* loop = loop_around(kernel, *copy.assignment);
  const clang::Stmt* whole = copy.assignment;
  if (loop != nullptr) {
    const clang::Stmt* pragma = parent_of(kernel, *loop);
    whole = isa_and_nonnull<clang::AttributedStmt>(pragma) ? pragma : loop;
    copy.loop = counted_loop(kernel, *loop);
    const auto begin = begin_of(kernel, *whole);
    const auto body = span_of(kernel, *loop->getBody());
    if (!copy.loop || !trip_count(kernel, *copy.loop) || copy.loop->step_value != 1 || !begin ||
        !body) {
      return std::nullopt;
    }
    copy.header = render(kernel, {*begin, body->begin});
  }
  const auto span = span_of(kernel, *whole);
  if (!span || !isa_and_nonnull<clang::CompoundStmt>(parent_of(kernel, *whole))) {
    return std::nullopt;
  }
  copy.end = span->end;
  return copy;
}

std::string guarded(const Kernel& kernel, const RegisterCopy& copy, const std::string& once,
                    const std::string& update) {
  const std::string last = copy.loop ? last_round(kernel, *copy.loop) : "";
  std::string always;
  std::string here;
  std::string at_last;
  const auto add = [](std::string& all, const std::string& one) {
    all += (all.empty() ? "" : " && ") + one;
  };
  for (const clang::Expr* guard : copy.guards) {
    if (!copy.loop || !mentions(*guard, *copy.loop->counter)) {
      add(always, text_of(kernel, *guard));
      continue;
    }
    add(here, text_of(kernel, *guard));
    add(at_last, text_in_round(kernel, *guard, *copy.loop->counter, last));
  }
  const std::string all = copy.header + "{\n" + update + "}\n";
  const std::string body = here.empty() ? once + all
                                        : once + "if (" + at_last + ") {\n" + all + "} else {\n" +
                                              copy.header + "{\nif (" + here + ") {\n" + update +
                                              "}\n}\n}\n";
  return (always.empty() ? "{\n" : "if (" + always + ") {\n") + body + "}";
}

} // namespace evo
