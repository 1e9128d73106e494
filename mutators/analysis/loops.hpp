// The counted loops of device code, with the names that labels use for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mutators/kernel.hpp"

namespace clang {
class Attr;
class Expr;
class ForStmt;
class FunctionDecl;
class VarDecl;
} // namespace clang

namespace evo {

/// for (int variable = first; variable < bound; variable += step), `<` or `<=`, in a __global__ or
/// __device__ function, outside macros; the body does not change the variable.
struct CountedLoop {
  const clang::ForStmt* loop = nullptr;
  const clang::FunctionDecl* function = nullptr;
  const clang::VarDecl* variable = nullptr;
  const clang::Expr* first = nullptr;
  const clang::Expr* bound = nullptr;
  const clang::Expr* step = nullptr;          // nullptr: ++variable
  std::optional<long> trip_count;             // where first, bound and step are constants
  std::vector<const clang::Attr*> attributes; // pragmas before it, in source order
  std::string name; // "gemm/k"; the second of that name in the kernel is "gemm/k#2"
};

/// In source order, an outer loop before its inner ones.
std::vector<CountedLoop> counted_loops(const Kernel& kernel);

} // namespace evo
