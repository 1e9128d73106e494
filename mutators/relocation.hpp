// One thread's code of a plain reduction, as text for another place: with other names for the
// coordinates of its element.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "mutators/analysis/plain_reduction.hpp"
#include "mutators/kernel.hpp"
#include "mutators/render.hpp"
#include "mutators/rewrite.hpp"

namespace evo {

/// What stands for what: names, or sums of names, which get parentheses where they need them.
struct Coordinates {
  std::string row;
  std::string column;
  std::string counter;
  std::string sum;
};

/// All of it throws CannotWrite (see inline_update.hpp) where a macro is in the way, a variable
/// changes, or something is needed that the coordinates leave empty.
class Relocation {
public:
  /// Variables other than those that `defined` statements define are written out where they are
  /// used.
  Relocation(const Kernel& kernel, const PlainReduction& reduction, Coordinates at,
             const std::vector<const clang::Stmt*>& defined = {});

  std::vector<Edit> edits(const clang::Stmt& code) const;
  std::string text(const clang::Expr& expr, Binding binding) const;
  /// With its semicolon and pragmas, on lines of its own.
  std::string statement(const clang::Stmt& code) const;

private:
  std::vector<Edit> edits(const clang::Stmt& code, Binding outer) const;
  std::string coordinate(const std::string& name, Binding binding) const;
  std::string written_out(const clang::VarDecl& variable, Binding binding) const;

  const Kernel& kernel_;
  const PlainReduction& reduction_;
  Coordinates at_;
  std::set<const clang::VarDecl*> defined_;
};

} // namespace evo
