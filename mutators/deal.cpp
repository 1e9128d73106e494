#include "mutators/deal.hpp"

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

const clang::BinaryOperator* operation(const clang::Expr& expr, clang::BinaryOperatorKind kind) {
  const auto* binary = dyn_cast<clang::BinaryOperator>(expr.IgnoreParenImpCasts());
  return binary != nullptr && binary->getOpcode() == kind ? binary : nullptr;
}

/// What a product of constants multiplies `factor` by, also in a constant that it mentions and
/// where it is divided among threads.
const clang::Expr* cofactor(const Kernel& kernel, const clang::Expr& product,
                            const clang::Expr& factor) {
  if (const auto* times = operation(product, clang::BO_Mul)) {
    if (same_expression(kernel, times->getLHS(), &factor)) {
      return times->getRHS();
    }
    return same_expression(kernel, times->getRHS(), &factor) ? times->getLHS() : nullptr;
  }
  if (const auto* share = operation(product, clang::BO_Div)) {
    return cofactor(kernel, *share->getLHS(), factor);
  }
  const clang::VarDecl* constant = variable_of(&product);
  return constant != nullptr && constant->isConstexpr() && constant->hasInit()
             ? cofactor(kernel, *constant->getInit(), factor)
             : nullptr;
}

std::vector<const clang::VarDecl*> definitions_in(const clang::Stmt& body) {
  std::vector<const clang::VarDecl*> result;
  for (const clang::Stmt* statement : body.children()) {
    const auto* definition = clang::dyn_cast_or_null<clang::DeclStmt>(statement);
    const auto* variable = definition != nullptr && definition->isSingleDecl()
                               ? dyn_cast<clang::VarDecl>(definition->getSingleDecl())
                               : nullptr;
    if (variable != nullptr && variable->hasInit() && variable->getType()->isIntegerType() &&
        variable->getType().isConstQualified()) {
      result.push_back(variable);
    }
  }
  return result;
}

} // namespace

std::optional<Deal> deal_of(const Kernel& kernel, const DeviceLoop& loop) {
  const auto definitions = definitions_in(*loop.counted.loop->getBody());
  for (const clang::VarDecl* slow : definitions) {
    for (const clang::VarDecl* fast : definitions) {
      const auto* quotient = operation(*slow->getInit(), clang::BO_Div);
      const auto* remainder = operation(*fast->getInit(), clang::BO_Rem);
      if (quotient == nullptr || remainder == nullptr || slow->getType() != fast->getType() ||
          !same_expression(kernel, quotient->getLHS(), remainder->getLHS()) ||
          !same_expression(kernel, quotient->getRHS(), remainder->getRHS())) {
        continue;
      }
      if (const auto* count = cofactor(kernel, *loop.counted.limit, *quotient->getRHS())) {
        return Deal{&loop, slow, fast, quotient, remainder, count};
      }
    }
  }
  return std::nullopt;
}

bool same_deal(const Kernel& kernel, const Deal& a, const Deal& b) {
  return a.slow->getName() == b.slow->getName() && a.fast->getName() == b.fast->getName() &&
         same_expression(kernel, a.quotient->getRHS(), b.quotient->getRHS()) &&
         same_expression(kernel, a.count, b.count);
}

std::optional<std::vector<Edit>> swapped(const Kernel& kernel, const Deal& deal) {
  std::vector<Edit> edits;
  const auto replace = [&](clang::SourceRange range, const std::optional<std::string>& by) {
    const auto span = span_of(kernel, range);
    if (span && by) {
      edits.push_back({span->begin, span->length(), *by});
    }
    return span && by;
  };
  const auto count = operand(kernel, *deal.count, Binding::Operand);
  const bool written = replace(deal.slow->getLocation(), deal.fast->getNameAsString()) &&
                       replace(deal.fast->getLocation(), deal.slow->getNameAsString()) &&
                       replace(deal.quotient->getRHS()->getSourceRange(), count) &&
                       replace(deal.remainder->getRHS()->getSourceRange(), count);
  return written ? std::optional(std::move(edits)) : std::nullopt;
}

} // namespace evo
