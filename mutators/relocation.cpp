#include "mutators/relocation.hpp"

#include <algorithm>
#include <iterator>

#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/inline_update.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

/// The loosest operation that needs no parentheses in place of `expr`.
Binding place_of(const Kernel& kernel, const clang::Expr& expr) {
  const clang::Stmt* inner = &expr;
  const clang::Stmt* around = parent_of(kernel, *inner);
  while (around != nullptr && isa<clang::ImplicitCastExpr>(around)) {
    inner = around;
    around = parent_of(kernel, *around);
  }
  if (const auto* binary = clang::dyn_cast_or_null<clang::BinaryOperator>(around)) {
    const bool right = binary->getRHS() == inner;
    if (binary->isMultiplicativeOp()) {
      return right ? Binding::Operand : Binding::Product;
    }
    if (binary->getOpcode() == clang::BO_Sub && right) {
      return Binding::Product;
    }
    return binary->isAdditiveOp() || binary->isComparisonOp() || binary->isAssignmentOp()
               ? Binding::Sum
               : Binding::Operand;
  }
  const auto* element = clang::dyn_cast_or_null<clang::ArraySubscriptExpr>(around);
  const bool enclosed = (element != nullptr && element->getIdx() == inner) ||
                        clang::isa_and_nonnull<clang::ParenExpr, clang::CallExpr>(around);
  return enclosed ? Binding::Sum : Binding::Operand;
}

} // namespace

Relocation::Relocation(const Kernel& kernel, const PlainReduction& reduction, Coordinates at,
                       const std::vector<const clang::Stmt*>& defined)
    : kernel_(kernel), reduction_(reduction), at_(std::move(at)) {
  for (const clang::Stmt* statement : defined) {
    visit(kernel, reduction.code, *statement,
          {.local = [&](const clang::VarDecl& variable) { defined_.insert(&variable); }});
  }
}

std::vector<Edit> Relocation::edits(const clang::Stmt& code) const {
  return edits(code, Binding::Sum);
}

std::vector<Edit> Relocation::edits(const clang::Stmt& code, Binding outer) const {
  std::vector<Edit> edits;
  const auto change = [&](const clang::Expr& expr, const auto& by) {
    const Span span = checked(span_of(kernel_, expr.getSourceRange()));
    edits.push_back(
        {span.begin, span.length(), by(&expr == &code ? outer : place_of(kernel_, expr))});
  };
  const auto change_part = [&](const clang::Expr& expr, Part part) {
    if (part == Part::Element) {
      const auto* element = clang::cast<clang::ArraySubscriptExpr>(expr.IgnoreParenImpCasts());
      std::ranges::move(this->edits(*element->getIdx()), std::back_inserter(edits));
    } else {
      const std::string& name = part == Part::Row ? at_.row : at_.column;
      change(expr, [&](Binding binding) { return coordinate(name, binding); });
    }
  };
  const auto change_use = [&](const clang::DeclRefExpr& use) {
    const auto* variable = dyn_cast<clang::VarDecl>(use.getDecl());
    const bool local = variable != nullptr && variable->isLocalVarDecl();
    if (variable == reduction_.loop.counted.counter) {
      change(use, [&](Binding binding) { return coordinate(at_.counter, binding); });
    } else if (variable == reduction_.sum) {
      change(use, [&](Binding binding) { return coordinate(at_.sum, binding); });
    } else if (local && !defined_.contains(variable)) {
      change(use, [&](Binding binding) { return written_out(*variable, binding); });
    }
  };
  visit(kernel_, reduction_.code, code, {.part = change_part, .use = change_use});
  return edits;
}

std::string Relocation::coordinate(const std::string& name, Binding binding) const {
  if (name.empty()) {
    throw CannotWrite{};
  }
  const bool is_sum = name.find(" + ") != std::string::npos;
  return is_sum && binding != Binding::Sum ? "(" + name + ")" : name;
}

std::string Relocation::written_out(const clang::VarDecl& variable, Binding binding) const {
  if (!variable.hasInit() || may_change(*reduction_.code.kernel->getBody(), variable)) {
    throw CannotWrite{};
  }
  return text(*variable.getInit(), binding);
}

std::string Relocation::text(const clang::Expr& expr, Binding binding) const {
  const auto result = operand(kernel_, expr, binding, edits(expr, binding));
  return result ? *result : throw CannotWrite{};
}

std::string Relocation::statement(const clang::Stmt& code) const {
  Span span = checked(span_of(kernel_, code));
  if (isa<clang::AttributedStmt>(code)) { // it begins behind the `#` of its pragma
    span.begin = line_begin(kernel_, span.begin);
  }
  return render(kernel_, span, edits(code)) + "\n";
}

} // namespace evo
