// Kernels that compute a matrix one element per thread, each a sum of products read from global
// memory: Y[row, column] = epilogue(sum over k of a(row, k) * b(k, column)).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mutators/analysis/elementwise_update.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class Expr;
class ParmVarDecl;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// A part of the sum's terms that all outputs of a row or of a column share: an element of an
/// array, or what is computed from one.
struct ReductionOperand {
  const clang::Expr* value = nullptr;
  const clang::ParmVarDecl* array = nullptr; // the first that it reads
  bool counter_is_inner = false; // neighbours in memory differ by k, not by the row or column
};

/// The number of rows or columns of the result.
struct MatrixExtent {
  std::string in_kernel;                // what says so there
  std::string in_entry;                 // and at the launch
  std::optional<std::int64_t> constant; // where it is the same at all sizes of the problem
};

/// One thread's code. `code.statements` is `definitions`, the loop, and the `epilogue`; the store
/// follows.
struct PlainReduction {
  Launch launch;
  ElementwiseUpdate code;
  DeviceLoop loop; // steps by one; its body defines variables and updates the sum
  const clang::VarDecl* sum = nullptr; // a float that starts at zero
  const clang::Expr* update =
      nullptr; // of the sum, the one statement of the loop that is no definition
  ReductionOperand of_row;
  ReductionOperand of_column;
  std::vector<const clang::Stmt*> definitions; // without the sum, and only those the epilogue needs
  std::vector<const clang::Stmt*> epilogue;
  std::vector<Condition>
      conditions; // of the store, apart from those that say where the matrix ends
  MatrixExtent rows;
  MatrixExtent columns;
};

/// Which of the variables of one thread's code an expression depends on.
struct Dependences {
  bool row = false;
  bool column = false;
  bool counter = false;
};
Dependences dependences(const Kernel& kernel, const PlainReduction& reduction,
                        const clang::Stmt& code);

/// Every such kernel that the entry launches once, in source order. The launch's threads store each
/// element of the matrix once and no others: evaluated over whole launches of several sizes.
std::vector<PlainReduction> find_plain_reductions(const Kernel& kernel);

} // namespace evo
