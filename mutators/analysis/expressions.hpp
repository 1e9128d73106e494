// Small questions about expressions that several analyses ask.
#pragma once

#include "mutators/kernel.hpp"

namespace clang {
class Expr;
class Stmt;
} // namespace clang

namespace evo {

/// Whether two expressions are written alike (apart from parentheses and layout) and name the same
/// variables. Two null pointers are alike.
bool same_expression(const Kernel& kernel, const clang::Expr* a, const clang::Expr* b);

/// Whether `inner` stands somewhere in `outer`, or is it.
bool contains(const clang::Stmt& outer, const clang::Stmt& inner);

/// The statement or expression right around `node`; nullptr around a function's body.
const clang::Stmt* parent_of(const Kernel& kernel, const clang::Stmt& node);

} // namespace evo
