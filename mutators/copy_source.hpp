// Where the elements that an assignment to shared memory writes come from, if it only copies.
#pragma once

#include <optional>
#include <vector>

namespace clang {
class Expr;
} // namespace clang

namespace evo {

/// guard ? read : 0.0f, or read without a guard.
struct CopiedElement {
  const clang::Expr* guard = nullptr;
  const clang::Expr* read = nullptr; // a float in global memory
};

/// whole ? *(const float4 *)group : make_float4(elements): a group by one access where it may, and
/// one by one elsewhere. Without `whole` always the one of the two that is there.
struct CopySource {
  const clang::Expr* whole = nullptr;
  const clang::Expr* group = nullptr; // pointer to the first element; nullptr: one by one
  std::vector<CopiedElement> elements;
};

/// The source of a value of type float, float2 or float4; that of a component is looked for in the
/// const variable that holds the group. nullopt where something is computed on the way or stands in
/// for what is out of range other than zero.
std::optional<CopySource> copy_source(const clang::Expr& value);

} // namespace evo
