// Small questions about expressions that several analyses ask.
#pragma once

#include <vector>

#include "mutators/kernel.hpp"

namespace clang {
class Expr;
class Stmt;
class ValueDecl;
class VarDecl;
} // namespace clang

namespace evo {

/// Whether two expressions are written alike (apart from parentheses and layout) and name the same
/// variables. Two null pointers are alike.
bool same_expression(const Kernel& kernel, const clang::Expr* a, const clang::Expr* b);

/// The variable that an expression names, apart from parentheses and casts; nullptr for any other.
const clang::VarDecl* variable_of(const clang::Expr* expr);

/// What a const local variable is initialised with, followed as far as that leads; any other
/// expression itself, without parentheses and implicit casts.
const clang::Expr& definition_of(const clang::Expr& expr);

/// An integer without its conversions to 32 bits and more, and without parentheses: what such
/// conversions change at all is a multiple of 2^32.
const clang::Expr& without_wide_casts(const Kernel& kernel, const clang::Expr& expr);

/// Whether `inner` stands somewhere in `outer`, or is it.
bool contains(const clang::Stmt& outer, const clang::Stmt& inner);

/// The statement or expression right around `node`; nullptr around a function's body.
const clang::Stmt* parent_of(const Kernel& kernel, const clang::Stmt& node);

/// The whole sum that a summand stands in.
const clang::Expr& sum_around(const Kernel& kernel, const clang::Expr& summand);

/// The extents of an array as its declaration writes them, outermost first; fewer where an alias
/// stands for some.
std::vector<const clang::Expr*> written_extents(const clang::ValueDecl& array);

} // namespace evo
