// Conditions under which code runs, and when two of them are the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace clang {
class Expr;
} // namespace clang

namespace evo {

/// `expression` must be `holds`.
struct Condition {
  const clang::Expr* expression = nullptr;
  bool holds = true;
};

/// The parts that must all hold: a && b apart, !(a || b) too.
std::vector<Condition> conjuncts(const std::vector<Condition>& conditions);

/// One text for a < b, b > a, !(a >= b) and !(b <= a), after `edits` of the source. nullopt inside
/// a macro.
std::optional<std::string> normal_form(const Kernel& kernel, const Condition& condition,
                                       const std::vector<Edit>& edits);

} // namespace evo
