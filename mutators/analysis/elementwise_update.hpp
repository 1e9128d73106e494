// Kernels that update a matrix element by element: Y[row * d + column] = g(that element, others).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "mutators/analysis/element_stores.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class DeclRefExpr;
class Expr;
class FunctionDecl;
class ParmVarDecl;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// What one thread does to its one element. Given the coordinates and the element's old value,
/// `statements` and then the store depend on nothing else of the thread, and write nothing but the
/// thread's own variables and the element.
struct ElementwiseUpdate {
  const clang::FunctionDecl* kernel = nullptr;
  const clang::ParmVarDecl* array = nullptr;
  ElementStore store;                         // in no loop; the last statement that runs
  std::vector<ElementRead> reads;             // of the same element
  std::vector<const clang::Stmt*> statements; // before the store, without what only yields the
                                              // coordinates
  const clang::Expr* row() const { return store.index.row; }
  const clang::Expr* column() const { return store.index.column.front(); }
};

/// nullopt unless the kernel is one.
std::optional<ElementwiseUpdate> elementwise_update(const Kernel& kernel,
                                                    const clang::FunctionDecl& function,
                                                    const clang::ParmVarDecl& array);

/// The same for a kernel that may store its element without looking at the old value. Conditions of
/// the store that depend on the thread otherwise are left out: which elements are stored is for
/// stored_elements() to tell.
std::optional<ElementwiseUpdate> elementwise_store(const Kernel& kernel,
                                                   const clang::FunctionDecl& function,
                                                   const clang::ParmVarDecl& array);

/// What an element is made of, in a kernel that may store several per thread and never reads them.
/// `code.statements` and the stored value depend on the coordinates alone, whatever the thread and
/// however often it went round the loops that the store stands in; `code.store.conditions` is
/// empty, and `code.reads` are those of the same element of `old`.
struct ElementValue {
  ElementwiseUpdate code;
  const clang::ParmVarDecl* old = nullptr; // another matrix of such elements; nullptr: none is read
};

/// nullopt unless the kernel stores to `array` in one place alone, and all that it does is that.
std::optional<ElementValue> element_value(const Kernel& kernel, const clang::FunctionDecl& function,
                                          const clang::ParmVarDecl& array);

/// What stands in for what when the update's code runs elsewhere.
enum class Part { Row, Column, Element };

struct UpdateVisitor {
  std::function<bool(const clang::Expr&)> skip = {};       // true: nothing inside it is visited
  std::function<void(const clang::Expr&, Part)> part = {}; // nothing inside it is visited
  std::function<void(const clang::DeclRefExpr&)> use = {};
  std::function<void(const clang::VarDecl&)> local = {}; // a definition
};

/// Goes through a piece of the update's code in source order.
void visit(const Kernel& kernel, const ElementwiseUpdate& update, const clang::Stmt& code,
           const UpdateVisitor& visitor);

/// Through all of it: the statements, the conditions, and the value that is stored.
void visit(const Kernel& kernel, const ElementwiseUpdate& update, const UpdateVisitor& visitor);

} // namespace evo
