// A piece of a kernel as the blocks inside the matrices run it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mutators/analysis/conditions.hpp"
#include "mutators/interior_condition.hpp"
#include "mutators/kernel.hpp"
#include "mutators/render.hpp"
#include "mutators/rewrite.hpp"

namespace clang {
class ConditionalOperator;
class DeclStmt;
class Expr;
class IfStmt;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// Collects the edits that take out of statements what the condition makes needless: an if or a
/// conditional expression that it decides gives way to the arm that is taken, of a conjunction go
/// the parts that hold, and a part that differs by thread for no reason becomes a uniform one.
class InteriorPath {
public:
  InteriorPath(const Kernel& kernel, InteriorCondition& condition)
      : kernel_(kernel), condition_(condition) {}

  void add(const clang::Stmt& statement) { visit(statement, true); }

  /// Sorted and disjoint.
  std::vector<Edit> edits() const;

private:
  /// What is left of a condition: parts joined by &&.
  struct Guard {
    std::optional<bool> decided;
    std::vector<std::string> parts;
    bool changed = false;
    /// Those parts that are the same for all threads, and stay so while an arm runs.
    std::vector<std::string> uniform;
    std::vector<const clang::VarDecl*> limited; // what parts say of variables
  };

  /// What is known of a part's text in an arm.
  struct Known {
    std::string text;
    bool holds = true;
  };

  void visit(const clang::Stmt& code, bool in_braces);
  void visit_if(const clang::IfStmt& branch, bool in_braces);
  void visit_choice(const clang::ConditionalOperator& choice);
  void visit_definition(const clang::DeclStmt& definition);
  void visit_arms(const Guard& guard, const clang::Stmt* yes, const clang::Stmt* no);
  void visit_arm(const clang::Stmt* arm, const std::vector<std::string>& known, bool holds);
  Guard guard(const clang::Expr& condition);
  bool add_part(const clang::Expr& part, Guard& guard);
  void rewrite(const clang::Expr& condition, const Guard& guard);
  void keep(const clang::Stmt& whole, const clang::Stmt* arm, bool in_braces);
  void remove(unsigned begin, unsigned end);
  std::optional<bool> known(const std::string& text) const;

  const Kernel& kernel_;
  InteriorCondition& condition_;
  std::vector<Edit> edits_;
  std::vector<Known> known_;
  std::vector<const clang::DeclStmt*> decided_definitions_;
};

} // namespace evo
