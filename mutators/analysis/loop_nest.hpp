// Loops right inside each other.
#pragma once

#include <optional>
#include <vector>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class Stmt;
} // namespace clang

namespace evo {

/// for (...) for (...) straight code, with the pragmas before each loop. The loops count from 0 by
/// 1, and every trip count is constant.
struct LoopNest {
  const clang::Stmt* statement = nullptr; // the outermost loop, with its pragmas
  std::vector<CountedLoop> loops;         // outermost first
  const clang::Stmt* code = nullptr;      // the innermost body; the only statement in its braces
};

/// nullopt where that is not what the statement is.
std::optional<LoopNest> loop_nest(const Kernel& kernel, const clang::Stmt* statement);

/// A loop without the pragmas before it; any other statement itself.
const clang::Stmt* without_pragmas(const clang::Stmt* statement);

/// The only statement in braces, or the statement itself.
const clang::Stmt* only_statement(const clang::Stmt* statement);

} // namespace evo
