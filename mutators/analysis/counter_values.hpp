// The values of expressions made of loop counters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "mutators/kernel.hpp"

namespace clang {
class Expr;
class FunctionDecl;
class VarDecl;
} // namespace clang

namespace evo {

/// What expressions of constants and of counters of a function's loops with constant bounds may be
/// in all iterations, joined by + * / and %. Exact where no counter appears twice.
class CounterValues {
public:
  using Values = std::set<std::int64_t>;

  CounterValues(const Kernel& kernel, const clang::FunctionDecl& function);

  /// nullopt for other expressions, and for those of more than some hundred values.
  std::optional<Values> of(const clang::Expr& expr) const;

private:
  const Kernel& kernel_;
  std::map<const clang::VarDecl*, Values> counters_;
};

} // namespace evo
