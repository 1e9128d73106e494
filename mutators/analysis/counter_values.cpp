#include "mutators/analysis/counter_values.hpp"

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/loops.hpp"

namespace evo {
namespace {

constexpr std::int64_t most_values = 256; // values of one expression

std::optional<std::int64_t> combined(int opcode, std::int64_t a, std::int64_t b) {
  switch (opcode) {
  case clang::BO_Add:
    return a + b;
  case clang::BO_Mul:
    return a * b;
  case clang::BO_Div:
    return b != 0 ? std::optional(a / b) : std::nullopt;
  case clang::BO_Rem:
    return b != 0 ? std::optional(a % b) : std::nullopt;
  default:
    return std::nullopt;
  }
}

} // namespace

CounterValues::CounterValues(const Kernel& kernel, const clang::FunctionDecl& function)
    : kernel_(kernel) {
  for (const DeviceLoop& loop : device_loops(kernel)) {
    const auto steps = loop.function == &function ? trip_count(kernel, loop.counted) : std::nullopt;
    if (!steps || *steps > most_values) {
      continue;
    }
    const std::int64_t start = *constant_value(kernel, *loop.counted.start);
    for (std::int64_t step = 0; step < *steps; ++step) {
      counters_[loop.counted.counter].insert(start + step * loop.counted.step_value);
    }
  }
}

std::optional<CounterValues::Values> CounterValues::of(const clang::Expr& expr) const {
  if (const auto value = constant_value(kernel_, expr)) {
    return Values{*value};
  }
  if (const clang::VarDecl* variable = variable_of(&expr)) {
    const auto counter = counters_.find(variable);
    return counter == counters_.end() ? std::nullopt : std::optional(counter->second);
  }
  const auto* operation = clang::dyn_cast<clang::BinaryOperator>(expr.IgnoreParenImpCasts());
  const auto left = operation != nullptr ? of(*operation->getLHS()) : std::nullopt;
  const auto right = left ? of(*operation->getRHS()) : std::nullopt;
  if (!right) {
    return std::nullopt;
  }
  Values result;
  for (const std::int64_t a : *left) {
    for (const std::int64_t b : *right) {
      const auto value = combined(operation->getOpcode(), a, b);
      if (!value || static_cast<std::int64_t>(result.size()) >= most_values) {
        return std::nullopt;
      }
      result.insert(*value);
    }
  }
  return result;
}

} // namespace evo
