// One element read into a register, in a loop or alone.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/element_stores.hpp"
#include "mutators/analysis/elementwise_update.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class BinaryOperator;
class Expr;
} // namespace clang

namespace evo {

/// registers = guard ? element : otherwise, with or without the guard; all that a loop with
/// steps of 1 and a constant trip count does, or no loop's.
struct RegisterCopy {
  const clang::BinaryOperator* assignment = nullptr;
  std::vector<const clang::Expr*> guards; // that must all hold
  std::optional<CountedLoop> loop;
  std::string header; // of the loop, with its pragmas, up to the body
  unsigned end = 0;   // behind the statement or loop

  /// The element, and which of its coordinates differ between rounds of the loop: both without one.
  std::set<Part> varies(const ElementRead& read) const;
};

/// nullopt for any other place of an element.
std::optional<RegisterCopy> register_copy(const Kernel& kernel, const clang::Expr& element);

/// Code that does `update` for every element that was copied: after `once`, if it reads any element
/// that no round of the loop tells apart, and without a test where the last round's guards hold.
/// Right where those of the last round imply all others'. CannotWrite (see inline_update.hpp) where
/// a macro is in the way.
std::string guarded(const Kernel& kernel, const RegisterCopy& copy, const std::string& once,
                    const std::string& update);

} // namespace evo
