// The compile-time constants of a kernel file, and what must hold between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mutators/analysis/evaluator.hpp"
#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace clang {
class Expr;
class VarDecl;
} // namespace clang

namespace evo {

/// A constexpr integer at namespace scope. Under other values of the free constants a derived one
/// is `Evaluator(kernel, assignment).value(*constant.initialiser)`, and so is any expression.
struct Constant {
  const clang::VarDecl* declaration = nullptr;
  const clang::Expr* initialiser = nullptr;
  std::string name;
  std::int64_t value = 0;
  bool free = false; // initialised by a literal, not by an expression of others
};

/// In source order; those in a macro or a template are left out.
std::vector<Constant> find_constants(const Kernel& kernel);

/// Gives a free constant another value; nullopt where the literal stands in a macro.
std::optional<Edit> set_constant(const Kernel& kernel, const Constant& constant,
                                 std::int64_t value);

/// What the file says or silently relies on about its constants: every static_assert holds, a
/// division between constants that leaves no remainder now leaves none, and what becomes a float
/// (a scale, a count to divide by) keeps its value.
struct ConstantRules {
  std::vector<const clang::Expr*> assertions;
  std::vector<std::pair<const clang::Expr*, const clang::Expr*>> exact_divisions;
  std::vector<std::pair<const clang::Expr*, std::int64_t>> numbers; // in floats, and their values
};
ConstantRules find_rules(const Kernel& kernel);

/// nullopt: all hold under the evaluator's assignment.
std::optional<Failure> check_rules(const ConstantRules& rules, Evaluator& evaluator);

} // namespace evo
