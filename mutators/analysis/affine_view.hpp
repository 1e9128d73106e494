// How indices move when a loop takes several consecutive elements at once.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "mutators/kernel.hpp"

namespace clang {
class ArraySubscriptExpr;
class Expr;
class VarDecl;
} // namespace clang

namespace evo {

/// The values of an integer over a group of consecutive elements e = 0, 1, ...: base + slope * e.
struct Progression {
  std::int64_t slope = 0;
  std::int64_t multiple = 1; // the base is one of this; 0: the base is 0
  bool non_negative = false;

  bool is_multiple_of(std::int64_t divisor) const { return multiple % divisor == 0; }
};

/// Evaluates index expressions for all groups, threads, blocks and sizes at once: what it returns
/// holds for each of them. A `moving` variable is the element's number; it counts from a multiple
/// of `width` (a power of two) on, and is never negative. Other variables are followed to their
/// definitions where nothing changes them later.
class AffineView {
public:
  AffineView(const Kernel& kernel, std::set<const clang::VarDecl*> moving, std::int64_t width)
      : kernel_(kernel), moving_(std::move(moving)), width_(width) {}

  /// nullopt unless the expression is a progression for certain.
  std::optional<Progression> of(const clang::Expr& integer) const;

  /// The number of an element, counted from the start of the array (of arrays) or from the pointer
  /// that its subscripts begin with.
  std::optional<Progression> element(const clang::ArraySubscriptExpr& place) const;

private:
  std::optional<Progression> variable(const clang::VarDecl& declaration) const;
  std::optional<Progression> counter(const clang::VarDecl& declaration) const;
  std::optional<Progression> combined(int opcode, const clang::Expr& left,
                                      const clang::Expr& right) const;
  std::optional<Progression> divided(Progression value, std::int64_t divisor) const;
  std::optional<Progression> remainder(Progression value, std::int64_t divisor) const;

  const Kernel& kernel_;
  std::set<const clang::VarDecl*> moving_;
  std::int64_t width_;
};

} // namespace evo
