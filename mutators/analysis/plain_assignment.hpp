// Assignments without conversions.
#pragma once

#include <optional>

namespace clang {
class Expr;
class Stmt;
} // namespace clang

namespace evo {

/// place = value, where both have one type: float4 and float alike.
struct PlainAssignment {
  const clang::Expr* place = nullptr;
  const clang::Expr* value = nullptr;
};

/// nullopt for any other statement, and where the value is converted.
std::optional<PlainAssignment> plain_assignment(const clang::Stmt* statement);

} // namespace evo
