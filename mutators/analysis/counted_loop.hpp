// Loops that count, in the one form that kernels use.
#pragma once

#include <cstdint>
#include <optional>

#include "mutators/kernel.hpp"

namespace clang {
class Expr;
class ForStmt;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// for (int counter = start; counter < limit; counter += step), step > 0 a compile-time constant,
/// `counter` declared in the header and changed by it alone. `++counter` counts as a step of 1.
struct CountedLoop {
  const clang::ForStmt* loop = nullptr;
  const clang::VarDecl* counter = nullptr;
  const clang::Expr* start = nullptr;
  const clang::Expr* limit = nullptr;
  const clang::Expr* step = nullptr; // nullptr for ++
  std::int64_t step_value = 1;
};

std::optional<CountedLoop> counted_loop(const Kernel& kernel, const clang::ForStmt& loop);

/// The loop that a variable counts; nullopt for any other variable.
std::optional<CountedLoop> loop_of_counter(const Kernel& kernel, const clang::VarDecl& variable);

/// The value of an integer constant expression; nullopt for anything else.
std::optional<std::int64_t> constant_value(const Kernel& kernel, const clang::Expr& expr);

/// Whether `statement` may change `variable`: assigns to it, or hands out its address or a
/// reference through which others could.
bool may_change(const clang::Stmt& statement, const clang::VarDecl& variable);

/// Whether `statement` mentions `variable` at all.
bool mentions(const clang::Stmt& statement, const clang::VarDecl& variable);

} // namespace evo
