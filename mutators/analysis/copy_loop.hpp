// Loops that move one element per step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class ArraySubscriptExpr;
class CallExpr;
class DeclStmt;
class Expr;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// for (...) { definitions; if (conditions) { computation; place = value; } }, with the definitions
/// in any of the braces and any number of ifs. Elements are of type float.
struct CopyLoop {
  DeviceLoop loop;
  std::vector<const clang::DeclStmt*> definitions; // of integers, made of registers
  std::vector<const clang::Expr*> conditions;
  std::vector<const clang::Stmt*> computation; // what only the value needs
  const clang::ArraySubscriptExpr* place = nullptr;
  const clang::Expr* value = nullptr;
  const clang::CallExpr* hinted_store = nullptr; // __stcs(&place, value) instead of place = value
  Memory to;
  Memory from; // the farthest memory that the value is read from

  /// place = guard ? read : otherwise. Without a guard the value is the read; no read: the value is
  /// something else.
  const clang::Expr* guard = nullptr;
  const clang::ArraySubscriptExpr* read = nullptr;
  const clang::CallExpr* hinted_load = nullptr; // __ldg(&read) instead of read
  const clang::Expr* otherwise = nullptr;
};

/// nullopt for any other loop, and where the value reads the memory that is written.
std::optional<CopyLoop> copy_loop(const DeviceLoop& loop);

/// const int index = start + step * stride, where the loop counts steps: the elements that staging
/// through registers deals out to a thread. `start` does not depend on the step.
struct DealtIndex {
  const clang::VarDecl* index = nullptr;
  const clang::Expr* start = nullptr;
  std::int64_t stride = 0;
};

std::optional<DealtIndex> dealt_index(const Kernel& kernel, const CopyLoop& copy);

} // namespace evo
