// How a kernel treats a matrix element by element: where it reads and writes array[row * width +
// column], under which loops and conditions, and which elements that makes in a whole launch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mutators/analysis/conditions.hpp"
#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/evaluator.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class ArraySubscriptExpr;
class BinaryOperator;
class Expr;
class FunctionDecl;
class ParmVarDecl;
class Stmt;
} // namespace clang

namespace evo {

/// row * width + column, the row-major index, with `width` a parameter of the kernel.
struct ElementIndex {
  const clang::Expr* row = nullptr;
  std::vector<const clang::Expr*> column; // its summands
  const clang::ParmVarDecl* width = nullptr;
};

/// nullopt for an index of another form. One that is a const variable is followed to its
/// definition.
std::optional<ElementIndex> element_index(const Kernel& kernel, const clang::Expr& index);

bool same_index(const Kernel& kernel, const ElementIndex& a, const ElementIndex& b);

/// array[index] = value, or another assignment operator, as a statement of its own.
struct ElementStore {
  const clang::BinaryOperator* assignment = nullptr;
  const clang::ArraySubscriptExpr* element = nullptr;
  ElementIndex index;
  std::vector<const clang::Stmt*> around; // innermost first, up to the kernel's body
  std::vector<CountedLoop> loops;         // around it, innermost first
  std::vector<Condition> conditions;      // of ifs around it, and of `if (...) return;` before it
};

struct ElementRead {
  const clang::ArraySubscriptExpr* element = nullptr;
  ElementIndex index;
};

struct ElementAccesses {
  std::vector<ElementStore> stores;
  std::vector<ElementRead> reads; // `array[i] += x` is a store, not a read
};

/// nullopt unless the kernel uses `array` in these ways alone, and every store stands in counted
/// loops and ifs that nothing leaves early but `if (...) return;` outside all loops.
std::optional<ElementAccesses> element_accesses(const Kernel& kernel,
                                                const clang::FunctionDecl& function,
                                                const clang::ParmVarDecl& array);

struct Element {
  std::int64_t row = 0;
  std::int64_t column = 0;

  auto operator<=>(const Element&) const = default;
};

struct ElementSet {
  std::vector<Element> elements; // sorted; one that is stored twice stands there twice
  std::int64_t width = 0;
};

/// Every element that a launch stores through `stores`. nullopt if that cannot be evaluated.
std::optional<ElementSet> stored_elements(const Kernel& kernel, const EvaluatedLaunch& launch,
                                          const std::vector<ElementStore>& stores);

} // namespace evo
