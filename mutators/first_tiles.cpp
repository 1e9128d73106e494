#include "mutators/first_tiles.hpp"

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// The constant factor of counter * step.
const clang::Expr* step_of(const Kernel& kernel, const clang::Expr& product,
                           const clang::VarDecl& counter) {
  const auto* binary = dyn_cast<clang::BinaryOperator>(product.IgnoreParenImpCasts());
  if (binary == nullptr || binary->getOpcode() != clang::BO_Mul) {
    return nullptr;
  }
  const clang::Expr* step = variable_of(binary->getLHS()) == &counter   ? binary->getRHS()
                            : variable_of(binary->getRHS()) == &counter ? binary->getLHS()
                                                                        : nullptr;
  return step != nullptr && constant_value(kernel, *step) ? step : nullptr;
}

/// The first variable at the head of the loop's body that is a product of its counter, and the
/// step; count and elements are left.
std::optional<FirstTiles> tiles_of(const Kernel& kernel, const CountedLoop& loop) {
  for (const clang::Stmt* statement : loop.loop->getBody()->children()) {
    const auto* definition = clang::dyn_cast_or_null<clang::DeclStmt>(statement);
    const auto* variable = definition != nullptr && definition->isSingleDecl()
                               ? dyn_cast<clang::VarDecl>(definition->getSingleDecl())
                               : nullptr;
    if (variable == nullptr) {
      return std::nullopt;
    }
    const clang::Expr* step =
        variable->hasInit() ? step_of(kernel, *variable->getInit(), *loop.counter) : nullptr;
    if (step != nullptr) {
      return FirstTiles{.first = variable, .step = step};
    }
  }
  return std::nullopt;
}

} // namespace

std::vector<FirstTiles> find_first_tiles(const Kernel& kernel,
                                         const clang::FunctionDecl& function) {
  std::vector<FirstTiles> result;
  for (const DeviceLoop& loop : device_loops(kernel)) {
    const CountedLoop& counted = loop.counted;
    const auto count = constant_value(kernel, *counted.limit);
    const bool counts_up = constant_value(kernel, *counted.start) == 0 && counted.step_value == 1;
    auto tiles =
        loop.function == &function && count && counts_up ? tiles_of(kernel, counted) : std::nullopt;
    if (tiles) {
      tiles->count = counted.limit;
      tiles->elements = *count * *constant_value(kernel, *tiles->step);
      result.push_back(*tiles);
    }
  }
  return result;
}

std::optional<std::string> elements_text(const Kernel& kernel, const FirstTiles& tiles) {
  const auto count = operand(kernel, *tiles.count, Binding::Product);
  const auto step = operand(kernel, *tiles.step, Binding::Operand);
  return count && step ? std::optional(*count + " * " + *step) : std::nullopt;
}

} // namespace evo
