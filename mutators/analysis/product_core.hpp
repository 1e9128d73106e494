// The core of a matrix product: where a thread multiplies what lies in shared memory.
#pragma once

#include <cstdint>
#include <vector>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class ArraySubscriptExpr;
class Expr;
class FunctionDecl;
class VarDecl;
} // namespace clang

namespace evo {

/// One factor of the products: an element of shared memory for each row or column of the thread.
struct Factor {
  const clang::Expr* load = nullptr;        // the lvalue that is read
  const clang::VarDecl* counter = nullptr;  // the row's or column's number in it
  const clang::VarDecl* fragment = nullptr; // the registers it goes through, if any
};

/// for (k) for (i) for (j) sum[i][j] += left * right, or the same with what is multiplied loaded
/// into registers first, for each k. All three count from 0 by 1 to a constant.
struct ProductCore {
  DeviceLoop k;
  CountedLoop rows;
  CountedLoop columns;
  const clang::VarDecl* sum = nullptr; // a local array of floats
  Factor left;                         // depends on k and the row
  Factor right;                        // depends on k and the column
};

/// Those of a function, in source order.
std::vector<ProductCore> product_cores(const Kernel& kernel, const clang::FunctionDecl& function);

/// How many products a thread adds up for each k; 0 where that is not constant.
std::int64_t products_per_step(const Kernel& kernel, const ProductCore& core);

} // namespace evo
