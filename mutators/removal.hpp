// What goes when a rewrite makes a kernel needless: the function, its launch, its constants.
#pragma once

#include <set>
#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/render.hpp"
#include "mutators/rewrite.hpp"

namespace clang {
class FunctionDecl;
class Stmt;
class ValueDecl;
} // namespace clang

namespace evo {

/// Collects the edits that remove things with their lines. All of it throws CannotWrite (see
/// inline_update.hpp) where a macro is in the way.
class Removal {
public:
  explicit Removal(const Kernel& kernel) : kernel_(kernel) {}

  /// A kernel, with the comment lines right above it and what sets its attributes.
  void function(const clang::FunctionDecl& function);
  void statement(const clang::Stmt& statement);
  /// What another edit replaces.
  void replaced(Span span) { removed_.push_back(span); }
  /// The constants at namespace scope, other than `needed`, and the structs that a removed launch
  /// was as large as, where nothing names them but what was removed until now, or each other. With
  /// a quotient goes the assertion right behind it that it leaves no remainder.
  void unneeded_declarations(const std::set<const clang::ValueDecl*>& needed);

  bool removes(unsigned offset) const;
  const std::vector<Edit>& edits() const { return edits_; }

private:
  bool declaration_alone(Span span);
  void lines(Span span, bool with_comment);

  const Kernel& kernel_;
  std::vector<Span> removed_;
  std::vector<Span> statements_; // of these
  std::vector<Edit> edits_;
};

} // namespace evo
