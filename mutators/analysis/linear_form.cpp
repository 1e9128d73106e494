#include "mutators/analysis/linear_form.hpp"

#include <algorithm>
#include <numeric>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/launches.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

const clang::VarDecl* variable_in(const clang::Stmt& code) {
  const auto* reference = dyn_cast<clang::DeclRefExpr>(&code);
  return reference == nullptr ? nullptr : dyn_cast<clang::VarDecl>(reference->getDecl());
}

Bounds constant(std::int64_t value) {
  return {value, value, value < 0 ? -value : value};
}

/// `value` rounded down to a multiple.
std::int64_t floored(std::int64_t value, std::int64_t multiple) {
  return value - ((value % multiple) + multiple) % multiple;
}

Bounds scaled(Bounds a, std::int64_t factor) {
  const std::int64_t ends[] = {a.least * factor, a.greatest * factor};
  return {std::ranges::min(ends), std::ranges::max(ends),
          a.multiple * (factor < 0 ? -factor : factor)};
}

Bounds added(Bounds a, Bounds b) {
  return {a.least + b.least, a.greatest + b.greatest, std::gcd(a.multiple, b.multiple)};
}

Bounds remainder(Bounds a, std::int64_t divisor) {
  if (a.greatest < divisor) {
    return a;
  }
  const std::int64_t multiple = std::gcd(a.multiple, divisor);
  return {0, divisor - multiple, multiple};
}

Bounds quotient(Bounds a, std::int64_t divisor) {
  return {a.least / divisor, a.greatest / divisor,
          a.multiple % divisor == 0 ? a.multiple / divisor : 1};
}

std::optional<Bounds> combined(clang::BinaryOperatorKind operation, Bounds a, Bounds b) {
  const bool positive = a.least >= 0 && b.is_constant() && b.least > 0;
  const bool shift = a.least >= 0 && b.is_constant() && b.least >= 0 && b.least < 31;
  switch (operation) {
  case clang::BO_Add:
    return added(a, b);
  case clang::BO_Sub:
    return added(a, scaled(b, -1));
  case clang::BO_Mul:
    return a.is_constant()   ? std::optional(scaled(b, a.least))
           : b.is_constant() ? std::optional(scaled(a, b.least))
                             : std::nullopt;
  case clang::BO_Div:
    return positive ? std::optional(quotient(a, b.least)) : std::nullopt;
  case clang::BO_Rem:
    return positive ? std::optional(remainder(a, b.least)) : std::nullopt;
  case clang::BO_Shl:
    return shift ? std::optional(scaled(a, std::int64_t{1} << b.least)) : std::nullopt;
  case clang::BO_Shr:
    return shift ? std::optional(quotient(a, std::int64_t{1} << b.least)) : std::nullopt;
  default:
    return std::nullopt;
  }
}

/// A block of the function's launches, if all of them have the same number of threads.
std::optional<Block> any_block(const Kernel& kernel, const clang::FunctionDecl& function) {
  const auto dims = find_dims(kernel);
  std::optional<Block> result;
  for (const std::int64_t size : {1009, 4096}) {
    for (const EvaluatedLaunch& launch :
         dims ? launches_at(kernel, *dims, size) : std::vector<EvaluatedLaunch>{}) {
      if (launch.launch.kernel != &function) {
        continue;
      }
      if (result && result->block != launch.block) {
        return std::nullopt;
      }
      result = launch.block_at({0, 0, 0});
    }
  }
  return result;
}

} // namespace

const LinearTerm* LinearForm::only(LinearTerm::Kind kind) const {
  const auto found = std::ranges::find(terms, kind, &LinearTerm::kind);
  return count(kind) == 1 ? &*found : nullptr;
}

std::size_t LinearForm::count(LinearTerm::Kind kind) const {
  return static_cast<std::size_t>(std::ranges::count(terms, kind, &LinearTerm::kind));
}

LinearView::LinearView(const Kernel& kernel, const clang::FunctionDecl& function, unsigned offset)
    : kernel_(kernel), function_(function), offset_(offset), evaluator_(kernel),
      block_(any_block(kernel, function)) {}

void LinearView::limit(const clang::VarDecl& variable, std::optional<std::int64_t> limit) {
  if (limit) {
    limits_[&variable] = *limit;
  } else {
    limits_.erase(&variable);
  }
}

const clang::Expr* LinearView::definition(const clang::VarDecl& variable) const {
  const bool local = variable.getDeclContext() == &function_ && !variable.hasGlobalStorage() &&
                     !clang::isa<clang::ParmVarDecl>(variable);
  const bool stays =
      variable.getType().isConstQualified() || !may_change(*function_.getBody(), variable);
  return local && stays && !variable.getType()->isReferenceType() ? variable.getInit() : nullptr;
}

LinearView::Sources LinearView::sources(const clang::VarDecl& variable) {
  const clang::SourceManager& files = kernel_.ast().getSourceManager();
  if (variable.hasGlobalStorage() && !files.isInMainFile(variable.getLocation())) {
    const auto name = variable.getName();
    const bool per_block = name == "blockIdx" || name == "gridDim";
    const bool per_thread = name == "threadIdx";
    return {.thread = per_thread,
            .block = per_block,
            .other = !per_block && !per_thread && name != "blockDim"};
  }
  if (clang::isa<clang::ParmVarDecl>(variable)) {
    const bool size = variable.getDeclContext() == &function_ &&
                      variable.getType()->isIntegerType() &&
                      !may_change(*function_.getBody(), variable);
    return {.size = size, .other = !size};
  }
  if (const auto loop = loop_of_counter(kernel_, variable)) {
    Sources result = sources(*loop->start);
    const Sources limit = sources(*loop->limit);
    result.counter = limit.size;
    result.other |= limit.other || limit.block || limit.counter || limit.thread;
    return result;
  }
  const clang::Expr* initialiser = definition(variable);
  return initialiser != nullptr ? sources(*initialiser) : Sources{.other = true};
}

LinearView::Sources LinearView::sources(const clang::Stmt& code) {
  const auto* expr = dyn_cast<clang::Expr>(&code);
  if (expr != nullptr && constant_value(kernel_, *expr)) {
    return {};
  }
  if (const auto* variable = variable_in(code)) {
    return sources(*variable);
  }
  Sources result{.other = !clang::isa<clang::BinaryOperator, clang::CastExpr, clang::ParenExpr,
                                      clang::MemberExpr, clang::ConditionalOperator>(code)};
  for (const clang::Stmt* child : code.children()) {
    const Sources part = sources(*child);
    result.thread |= part.thread;
    result.block |= part.block;
    result.size |= part.size;
    result.counter |= part.counter;
    result.other |= part.other;
  }
  return result;
}

bool LinearView::is_uniform(const clang::Expr& integer) {
  const Sources from = sources(integer);
  return !from.thread && !from.other;
}

std::optional<LinearForm> LinearView::of(const clang::Expr& integer) {
  if (const auto value = constant_value(kernel_, integer)) {
    return LinearForm{.terms = {}, .rest = constant(*value)};
  }
  const clang::Expr& expr = without_wide_casts(kernel_, integer);
  const Sources from = sources(expr);
  if (from.other) {
    return std::nullopt;
  }
  if (!from.block && !from.size && !from.counter) {
    const auto rest = bounds(expr);
    return rest ? std::optional(LinearForm{.terms = {}, .rest = *rest}) : std::nullopt;
  }
  if (const auto* variable = variable_in(expr)) {
    return of_variable(expr, *variable);
  }
  const auto* operation = dyn_cast<clang::BinaryOperator>(&expr);
  const bool is_sum = operation != nullptr && operation->isAdditiveOp();
  if (from.block && !from.thread && !from.counter && !from.size && !is_sum) {
    return LinearForm{.terms = {{LinearTerm::Kind::Origin, &expr, 1}}, .rest = {}};
  }
  return operation == nullptr ? std::nullopt : combined(*operation);
}

std::optional<LinearForm> LinearView::of_variable(const clang::Expr& use,
                                                  const clang::VarDecl& variable) {
  using Kind = LinearTerm::Kind;
  const auto term = [&](Kind kind) { return LinearForm{.terms = {{kind, &use, 1}}, .rest = {}}; };
  if (clang::isa<clang::ParmVarDecl>(variable)) {
    return term(Kind::Size);
  }
  if (loop_of_counter(kernel_, variable)) {
    return term(Kind::Counter);
  }
  const Sources from = sources(variable);
  const bool before =
      kernel_.ast().getSourceManager().getFileOffset(variable.getLocation()) < offset_;
  if (before && from.block && !from.thread && !from.counter) {
    return term(Kind::Origin);
  }
  return of(*definition(variable));
}

std::optional<LinearForm> LinearView::sum(std::optional<LinearForm> left,
                                          std::optional<LinearForm> right,
                                          std::int64_t sign) const {
  if (!left || !right) {
    return std::nullopt;
  }
  for (const LinearTerm& term : right->terms) {
    const auto known = std::ranges::find_if(left->terms, [&](const LinearTerm& other) {
      return same_expression(kernel_, other.expr, term.expr);
    });
    if (known == left->terms.end()) {
      left->terms.push_back({term.kind, term.expr, sign * term.coefficient});
    } else {
      known->coefficient += sign * term.coefficient;
    }
  }
  std::erase_if(left->terms, [](const LinearTerm& term) { return term.coefficient == 0; });
  left->rest = added(left->rest, scaled(right->rest, sign));
  return left;
}

std::optional<LinearForm> LinearView::combined(const clang::BinaryOperator& operation) {
  if (operation.isAdditiveOp()) {
    return sum(of(*operation.getLHS()), of(*operation.getRHS()),
               operation.getOpcode() == clang::BO_Add ? 1 : -1);
  }
  const auto left = constant_value(kernel_, *operation.getLHS());
  const auto right = constant_value(kernel_, *operation.getRHS());
  if (operation.getOpcode() != clang::BO_Mul || (!left && !right)) {
    return std::nullopt;
  }
  auto form = of(left ? *operation.getRHS() : *operation.getLHS());
  if (form) {
    const std::int64_t factor = left ? *left : *right;
    form->rest = scaled(form->rest, factor);
    for (LinearTerm& term : form->terms) {
      term.coefficient *= factor;
    }
  }
  return form;
}

std::optional<LinearForm> LinearView::difference(const clang::Expr& left,
                                                 const clang::Expr& right) {
  return sum(of(left), of(right), -1);
}

/// The exact bounds where only the thread's number decides.
std::optional<Bounds> LinearView::over_threads(const clang::Expr& integer) {
  if (!block_) {
    return std::nullopt;
  }
  const auto evaluated = evaluator_.value(integer, *block_);
  const auto* lanes = std::get_if<Ints>(&evaluated);
  if (lanes == nullptr) {
    return std::nullopt;
  }
  Bounds result = constant((*lanes)[0]);
  for (const std::int64_t value : lanes->values()) {
    result = {std::min(result.least, value), std::max(result.greatest, value),
              std::gcd(result.multiple, value)};
  }
  return result;
}

std::optional<Bounds> LinearView::bounds(const clang::Expr& integer) {
  if (const auto value = constant_value(kernel_, integer)) {
    return constant(*value);
  }
  const clang::Expr& expr = without_wide_casts(kernel_, integer);
  if (const auto* variable = variable_in(expr)) {
    return bounds(*variable);
  }
  const bool limited =
      std::ranges::any_of(limits_, [&](const auto& limit) { return mentions(expr, *limit.first); });
  if (const auto exact = limited ? std::nullopt : over_threads(expr)) {
    return exact;
  }
  const auto* operation = dyn_cast<clang::BinaryOperator>(&expr);
  if (operation == nullptr) {
    return std::nullopt;
  }
  const auto left = bounds(*operation->getLHS());
  const auto right = bounds(*operation->getRHS());
  return left && right ? evo::combined(operation->getOpcode(), *left, *right) : std::nullopt;
}

std::optional<Bounds> LinearView::bounds(const clang::VarDecl& variable) {
  std::optional<Bounds> result;
  if (const auto loop = loop_of_counter(kernel_, variable)) {
    const auto start = bounds(*loop->start);
    const auto limit = bounds(*loop->limit);
    if (!start || !limit) {
      return std::nullopt;
    }
    const std::int64_t multiple = std::gcd(start->multiple, loop->step_value);
    result = Bounds{start->least, floored(limit->greatest - 1, multiple), multiple};
  } else if (const clang::Expr* initialiser = definition(variable)) {
    result = bounds(*initialiser);
  }
  const auto known = limits_.find(&variable);
  if (result && known != limits_.end() && result->multiple != 0) {
    result->greatest = std::min(result->greatest, floored(known->second - 1, result->multiple));
  }
  return result;
}

std::int64_t LinearView::multiple(const clang::Expr& integer, std::int64_t of_sizes) {
  if (const auto value = constant_value(kernel_, integer)) {
    return *value < 0 ? -*value : *value;
  }
  const clang::Expr& expr = without_wide_casts(kernel_, integer);
  const auto* variable = variable_in(expr);
  if (variable != nullptr && sources(*variable).size && clang::isa<clang::ParmVarDecl>(variable)) {
    return of_sizes;
  }
  const auto loop = variable == nullptr ? std::nullopt : loop_of_counter(kernel_, *variable);
  if (loop) {
    return std::gcd(multiple(*loop->start, of_sizes), loop->step_value);
  }
  const Sources from = sources(expr);
  const bool local = !from.block && !from.size && !from.counter && !from.other;
  if (const auto known = local ? bounds(expr) : std::nullopt) {
    return known->multiple;
  }
  if (const auto* initialiser = variable == nullptr ? nullptr : definition(*variable)) {
    return multiple(*initialiser, of_sizes);
  }
  const auto* operation = dyn_cast<clang::BinaryOperator>(&expr);
  if (operation == nullptr) {
    return 1;
  }
  const std::int64_t left = multiple(*operation->getLHS(), of_sizes);
  const std::int64_t right = multiple(*operation->getRHS(), of_sizes);
  constexpr std::int64_t enough = 4096; // bytes that anything is aligned to
  return operation->getOpcode() == clang::BO_Mul ? std::gcd(left, enough) * std::gcd(right, enough)
         : operation->isAdditiveOp()             ? std::gcd(left, right)
                                                 : 1;
}

} // namespace evo
