#include "mutators/analysis/evaluator.hpp"

#include <utility>

#include "mutators/analysis/interpreter.hpp"

namespace evo {
namespace {

template <class F> auto attempt(F f) -> std::variant<decltype(f()), Failure> {
  try {
    return f();
  } catch (Failure& failure) {
    return std::move(failure);
  }
}

} // namespace

Evaluator::Evaluator(const Kernel& kernel, Assignment values, std::int64_t step_limit)
    : interpreter_(std::make_unique<Interpreter>(kernel, std::move(values), step_limit)) {}
Evaluator::~Evaluator() = default;

std::variant<std::int64_t, Failure> Evaluator::value(const clang::Expr& expression) {
  return attempt([&] { return interpreter_->integer(expression); });
}

std::variant<Ints, Failure> Evaluator::value(const clang::Expr& expression, const Block& block) {
  return attempt([&] { return interpreter_->integers(expression, block); });
}

std::variant<std::int64_t, Failure> Evaluator::size_of(const clang::ValueDecl& declaration) {
  return attempt([&] { return interpreter_->size_of(declaration); });
}

std::optional<Failure> Evaluator::run(const Block& block, AccessObserver& observer) {
  try {
    interpreter_->run(block, observer);
    return std::nullopt;
  } catch (Failure& failure) {
    return std::move(failure);
  }
}

const std::vector<Array>& Evaluator::arrays() const {
  return interpreter_->arrays();
}

} // namespace evo
