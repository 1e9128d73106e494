// An element-wise update as code at another kernel's store.
#pragma once

#include <map>
#include <set>
#include <string>

#include "mutators/analysis/elementwise_update.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/kernel.hpp"
#include "mutators/render.hpp"

namespace clang {
class Expr;
class ParmVarDecl;
} // namespace clang

namespace evo {

/// Thrown where a rewrite cannot be written down: a macro or a hidden name is in the way. Whoever
/// composes the edits catches it and proposes nothing.
struct CannotWrite {};

/// The text of an expression; CannotWrite inside a macro.
std::string text_of(const Kernel& kernel, const clang::Expr& expr);
/// The text of a parameter's declaration under another name; CannotWrite inside a macro.
std::string declaration(const Kernel& kernel, const clang::ParmVarDecl& parameter,
                        const std::string& name);
/// The node itself; CannotWrite without one.
template <class T> const T& present(const T* found) {
  return found != nullptr ? *found : throw CannotWrite{};
}
/// The span itself; CannotWrite without one.
Span checked(std::optional<Span> span);

/// `name` if it is not taken, else the prefix before it, with a number if need be.
std::string fresh_name(const std::string& name, const std::string& prefix,
                       const std::set<std::string>& taken);

/// Where an update goes.
struct InlineSite {
  const ElementStore& store;
  const clang::FunctionDecl& kernel;
  bool in_own_braces = false; // no other update goes into the same braces
  /// What the update's parameters are called here.
  const std::map<const clang::ParmVarDecl*, std::string>& parameters;
  const std::set<std::string>& file_names; // at namespace scope
};

/// What stands instead of the store: the update's statements with this store's coordinates, and
/// the updated value stored. Of the update's own conditions stay those that the store's do not
/// imply; where they fail, the old value is stored.
std::string inlined_update(const Kernel& kernel, const ElementwiseUpdate& update,
                           const InlineSite& site);

} // namespace evo
