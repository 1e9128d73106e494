#include "mutators/analysis/loop_nest.hpp"

#include <algorithm>

#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/loops.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

bool is_straight(const clang::Stmt* statement) {
  if (const auto* braces = dyn_cast<clang::CompoundStmt>(statement)) {
    return std::ranges::all_of(braces->body(), is_straight);
  }
  return isa<clang::Expr, clang::DeclStmt>(statement);
}

} // namespace

const clang::Stmt* only_statement(const clang::Stmt* statement) {
  const auto* braces = dyn_cast<clang::CompoundStmt>(statement);
  return braces != nullptr && braces->size() == 1 ? braces->body_front() : statement;
}

const clang::Stmt* without_pragmas(const clang::Stmt* statement) {
  const auto* attributed = dyn_cast<clang::AttributedStmt>(statement);
  return attributed == nullptr ? statement : attributed->getSubStmt();
}

std::optional<LoopNest> loop_nest(const Kernel& kernel, const clang::Stmt* statement) {
  LoopNest nest{.statement = statement, .loops = {}, .code = statement};
  while (const auto* loop = dyn_cast<clang::ForStmt>(without_pragmas(nest.code))) {
    const auto counted = counted_loop(kernel, *loop);
    const bool from_zero = counted && constant_value(kernel, *counted->start) == 0 &&
                           counted->step_value == 1 && trip_count(kernel, *counted);
    if (!from_zero) {
      return std::nullopt;
    }
    nest.loops.push_back(*counted);
    nest.code = only_statement(loop->getBody());
  }
  return !nest.loops.empty() && is_straight(nest.code) ? std::optional(nest) : std::nullopt;
}

} // namespace evo
