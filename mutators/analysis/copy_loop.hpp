// Loops that move one element per step.
#pragma once

#include <optional>
#include <vector>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class ArraySubscriptExpr;
class DeclStmt;
class Expr;
} // namespace clang

namespace evo {

/// for (...) { definitions; if (conditions) place = value; }, with the definitions in any of the
/// braces and any number of ifs. Elements are of type float.
struct CopyLoop {
  DeviceLoop loop;
  std::vector<const clang::DeclStmt*> definitions; // of integers, made of registers
  std::vector<const clang::Expr*> conditions;
  const clang::ArraySubscriptExpr* place = nullptr;
  const clang::Expr* value = nullptr;
  Memory to;
  Memory from; // the farthest memory that the value is read from

  /// place = guard ? read : otherwise. Without a guard the value is the read; no read: the value
  /// is something else.
  const clang::Expr* guard = nullptr;
  const clang::ArraySubscriptExpr* read = nullptr;
  const clang::Expr* otherwise = nullptr;
};

/// nullopt for any other loop, and where the value reads the memory that is written.
std::optional<CopyLoop> copy_loop(const DeviceLoop& loop);

} // namespace evo
