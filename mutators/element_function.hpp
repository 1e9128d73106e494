// A device function that computes one element of a matrix, made of the kernel that stored them all.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mutators/analysis/elementwise_update.hpp"
#include "mutators/kernel.hpp"
#include "mutators/names.hpp"

namespace clang {
class ArraySubscriptExpr;
class Expr;
class ForStmt;
class ParmVarDecl;
class Stmt;
class ValueDecl;
class VarDecl;
} // namespace clang

namespace evo {

/// Texts, where the function is called.
struct ElementPlace {
  std::string row;
  std::string column;
  std::string old;
};

/// What parameters of the kernel are called elsewhere.
using ParameterNames = std::map<const clang::ParmVarDecl*, std::string>;

/// All of it throws CannotWrite (see inline_update.hpp) where a macro or a name is in the way.
class ElementFunction {
public:
  ElementFunction(const Kernel& kernel, const ElementValue& value, Names& names);

  /// For calls in a loop, between which these parts vary: what a loop of constant trip count reads
  /// from memory goes into an array before it, and what depends on none of these parts is computed
  /// before the calls.
  void hoist(const std::set<Part>& varying);

  /// The kernel's parameters that calls and what is hoisted need, in order, with the old matrix.
  std::vector<const clang::ParmVarDecl*> parameters_of_value() const;
  /// What of the file the value needs.
  const std::set<const clang::ValueDecl*>& used() const { return used_; }

  std::string definition() const;
  std::string call(const ElementPlace& place, const ParameterNames& names) const;
  /// `taken` are names that the code must not hide.
  std::string hoisted(const ElementPlace& place, const ParameterNames& names,
                      const std::set<std::string>& taken) const;

private:
  /// An array of what a loop reads.
  struct Fragment {
    const clang::ArraySubscriptExpr* read = nullptr;
    const clang::ForStmt* loop = nullptr;
    const clang::VarDecl* counter = nullptr;
    const clang::Expr* extent = nullptr;
    std::string name;
  };
  /// A statement of the kernel's, or what fills a fragment.
  struct Piece {
    const clang::Stmt* statement = nullptr;
    const Fragment* fragment = nullptr;
    bool varies = true;
  };
  struct Needs {
    std::set<Part> parts;
    std::set<const clang::ValueDecl*> used;
    std::set<const clang::ValueDecl*> defined; // or changed
    std::set<const Fragment*> fragments;
  };
  struct Scope {
    ElementPlace place;
    const ParameterNames* names = nullptr; // nullptr: the function's own
  };
  /// What the function gets from hoisted code.
  struct Shared {
    std::string declaration;
    std::string name;
  };

  void add_fragments(const clang::Stmt& statement);
  const Fragment* fragment_of(const clang::Expr& expr) const;
  Needs needs_of(const Piece& piece) const;
  Needs needs_of(const clang::Stmt& code) const;
  Needs needs_of_function() const;
  std::vector<Shared> shared() const;
  std::string text(const Piece& piece, const Scope& scope) const;
  std::string text(const clang::Stmt& code, const Scope& scope) const;
  bool is_statement(const clang::Expr& expr) const;

  const Kernel& kernel_;
  const ElementValue& value_;
  const ElementwiseUpdate& code_;
  Names& names_;
  const std::string name_;
  ElementPlace own_; // names of the function's parameters
  std::vector<std::unique_ptr<Fragment>> fragments_;
  std::vector<Piece> pieces_;
  std::set<const clang::ValueDecl*> used_;
};

} // namespace evo
