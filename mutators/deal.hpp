// How a loop deals the elements of a tile out to threads.
#pragma once

#include <optional>
#include <vector>

#include "mutators/analysis/loops.hpp"
#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace clang {
class BinaryOperator;
class Expr;
class VarDecl;
} // namespace clang

namespace evo {

/// const int slow = number / extent;
/// const int fast = number % extent;
/// of a number below extent * count: neighbouring numbers differ in `fast`.
struct Deal {
  const DeviceLoop* loop = nullptr;
  const clang::VarDecl* slow = nullptr;
  const clang::VarDecl* fast = nullptr;
  const clang::BinaryOperator* quotient = nullptr;
  const clang::BinaryOperator* remainder = nullptr;
  const clang::Expr* count = nullptr; // what the loop's limit multiplies the extent by
};

/// nullopt where the loop's body does not begin so, or where its limit, with the constants in it
/// followed, is not made of such a product.
std::optional<Deal> deal_of(const Kernel& kernel, const DeviceLoop& loop);

/// Whether two loops deal alike by their text: the halves of a copy through registers.
bool same_deal(const Kernel& kernel, const Deal& a, const Deal& b);

/// Makes neighbouring numbers differ in what was `slow`; nullopt in a macro.
std::optional<std::vector<Edit>> swapped(const Kernel& kernel, const Deal& deal);

} // namespace evo
