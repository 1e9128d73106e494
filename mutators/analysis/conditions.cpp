#include "mutators/analysis/conditions.hpp"

#include <utility>

#include <clang/AST/Expr.h>

#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

void split(const Condition& condition, std::vector<Condition>& parts) {
  const clang::Expr* expr = condition.expression->IgnoreParenImpCasts();
  const auto* binary = dyn_cast<clang::BinaryOperator>(expr);
  const auto* unary = dyn_cast<clang::UnaryOperator>(expr);
  const auto both = condition.holds ? clang::BO_LAnd : clang::BO_LOr;
  if (binary != nullptr && binary->getOpcode() == both) {
    split({binary->getLHS(), condition.holds}, parts);
    split({binary->getRHS(), condition.holds}, parts);
  } else if (unary != nullptr && unary->getOpcode() == clang::UO_LNot) {
    split({unary->getSubExpr(), !condition.holds}, parts);
  } else {
    parts.push_back({expr, condition.holds});
  }
}

std::optional<std::string> text(const Kernel& kernel, const clang::Expr& expr,
                                const std::vector<Edit>& edits) {
  const auto span = span_of(kernel, expr.getSourceRange());
  if (!span) {
    return std::nullopt;
  }
  std::string result = render(kernel, *span, edits);
  std::erase_if(result, [](char c) { return c == ' ' || c == '\n' || c == '\t'; });
  return result;
}

} // namespace

std::vector<Condition> conjuncts(const std::vector<Condition>& conditions) {
  std::vector<Condition> parts;
  for (const Condition& condition : conditions) {
    split(condition, parts);
  }
  return parts;
}

std::optional<std::string> normal_form(const Kernel& kernel, const Condition& condition,
                                       const std::vector<Edit>& edits) {
  const auto* comparison = dyn_cast<clang::BinaryOperator>(condition.expression);
  if (comparison == nullptr || !comparison->isComparisonOp() ||
      !comparison->getLHS()->getType()->isIntegerType()) {
    const auto whole = text(kernel, *condition.expression, edits);
    return whole ? std::optional((condition.holds ? "" : "!") + *whole) : std::nullopt;
  }
  auto left = text(kernel, *comparison->getLHS(), edits);
  auto right = text(kernel, *comparison->getRHS(), edits);
  if (!left || !right) {
    return std::nullopt;
  }
  auto opcode = comparison->getOpcode();
  if (!condition.holds) {
    opcode = clang::BinaryOperator::negateComparisonOp(opcode);
  }
  if (opcode == clang::BO_GT || opcode == clang::BO_GE) {
    opcode = clang::BinaryOperator::reverseComparisonOp(opcode);
    std::swap(left, right);
  }
  return *left + clang::BinaryOperator::getOpcodeStr(opcode).str() + *right;
}

} // namespace evo
