// Whether work may move from one thread of a block to another.
#pragma once

#include <set>

#include "mutators/kernel.hpp"

namespace clang {
class ArraySubscriptExpr;
class Expr;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// What has the same value in all threads of a block that get there. `given` variables count as
/// such.
class Uniformity {
public:
  Uniformity(const Kernel& kernel, std::set<const clang::VarDecl*> given = {})
      : kernel_(kernel), known_(std::move(given)) {}

  bool holds(const clang::Stmt& expression);

private:
  bool holds(const clang::VarDecl& variable);
  bool stays_uniform(const clang::Stmt& code, const clang::VarDecl& variable, bool uniform_flow);

  const Kernel& kernel_;
  std::set<const clang::VarDecl*> known_; // and those being looked at
};

/// Whether, between two barriers, nothing but `statement` accesses what it accesses at `place`, in
/// shared memory, and all threads of the block get to it: then it does not matter which thread does
/// what of it. Another stage of the same tile (tile[next_stage] beside tile[stage]) is something
/// else.
bool is_alone_between_barriers(const Kernel& kernel, const clang::Stmt& statement,
                               const clang::ArraySubscriptExpr& place);

} // namespace evo
