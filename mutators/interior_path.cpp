#include "mutators/interior_path.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>
#include <llvm/ADT/StringExtras.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/references.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

/// a && b apart, as they are written.
void split(const clang::Expr& expr, std::vector<const clang::Expr*>& parts) {
  const auto* both = dyn_cast<clang::BinaryOperator>(expr.IgnoreParenImpCasts());
  if (both != nullptr && both->getOpcode() == clang::BO_LAnd) {
    split(*both->getLHS(), parts);
    split(*both->getRHS(), parts);
  } else {
    parts.push_back(&expr);
  }
}

/// A definition of one const bool.
const clang::VarDecl* flag_of(const clang::DeclStmt& definition) {
  const auto* variable =
      definition.isSingleDecl() ? dyn_cast<clang::VarDecl>(definition.getSingleDecl()) : nullptr;
  const bool flag = variable != nullptr && variable->getType().isConstQualified() &&
                    variable->getType()->isBooleanType() && variable->hasInit();
  return flag ? variable : nullptr;
}

/// Braces that may go: they hold no names.
const clang::CompoundStmt* plain_braces(const clang::Stmt& arm) {
  const auto* braces = dyn_cast<clang::CompoundStmt>(&arm);
  const bool plain =
      braces != nullptr && std::ranges::none_of(braces->body(), [](const clang::Stmt* statement) {
        return isa<clang::DeclStmt>(statement);
      });
  return plain ? braces : nullptr;
}

/// What stands between braces, from its first line's beginning on where that is its own.
Span inside_braces(const Kernel& kernel, Span braces) {
  Span inside{braces.begin + 1, braces.end - 1};
  const std::size_t first = kernel.source().find_first_not_of(" \t\n", inside.begin);
  if (first < inside.end) {
    const unsigned line = line_begin(kernel, static_cast<unsigned>(first));
    inside.begin = std::max(inside.begin, line);
  }
  while (inside.end > inside.begin &&
         std::string_view(" \t\n").find(kernel.source()[inside.end - 1]) !=
             std::string_view::npos) {
    --inside.end;
  }
  return inside;
}

/// v < c in a condition that holds: the variable and its limit.
std::optional<std::pair<const clang::VarDecl*, std::int64_t>> limit_of(const Kernel& kernel,
                                                                       const clang::Expr& part) {
  const auto* comparison = dyn_cast<clang::BinaryOperator>(part.IgnoreParenImpCasts());
  if (comparison == nullptr || comparison->getOpcode() != clang::BO_LT) {
    return std::nullopt;
  }
  const clang::VarDecl* variable = variable_of(comparison->getLHS());
  const auto limit = constant_value(kernel, *comparison->getRHS());
  return variable != nullptr && limit ? std::optional(std::pair(variable, *limit)) : std::nullopt;
}

} // namespace

void InteriorPath::visit(const clang::Stmt& code, bool in_braces) {
  if (const auto* branch = dyn_cast<clang::IfStmt>(&code)) {
    visit_if(*branch, in_braces);
  } else if (const auto* choice = dyn_cast<clang::ConditionalOperator>(&code)) {
    visit_choice(*choice);
  } else if (const auto* definition = dyn_cast<clang::DeclStmt>(&code)) {
    visit_definition(*definition);
  } else {
    for (const clang::Stmt* child : code.children()) {
      if (child != nullptr) {
        visit(*child, isa<clang::CompoundStmt>(code));
      }
    }
  }
}

void InteriorPath::visit_if(const clang::IfStmt& branch, bool in_braces) {
  if (branch.hasInitStorage() || branch.hasVarStorage()) {
    visit_arms({}, branch.getThen(), branch.getElse());
    return;
  }
  const Guard left = guard(*branch.getCond());
  if (left.decided) {
    keep(branch, *left.decided ? branch.getThen() : branch.getElse(), in_braces);
  } else {
    rewrite(*branch.getCond(), left);
    visit_arms(left, branch.getThen(), branch.getElse());
  }
}

void InteriorPath::visit_choice(const clang::ConditionalOperator& choice) {
  const Guard left = guard(*choice.getCond());
  if (left.decided) {
    keep(choice, *left.decided ? choice.getTrueExpr() : choice.getFalseExpr(), false);
  } else {
    rewrite(*choice.getCond(), left);
    visit_arms(left, choice.getTrueExpr(), choice.getFalseExpr());
  }
}

void InteriorPath::visit_arms(const Guard& guard, const clang::Stmt* yes, const clang::Stmt* no) {
  visit_arm(yes, guard.uniform, true);
  for (const clang::VarDecl* variable : guard.limited) {
    condition_.view().limit(*variable, std::nullopt);
  }
  visit_arm(no,
            guard.parts == guard.uniform && guard.parts.size() == 1 ? guard.parts
                                                                    : std::vector<std::string>{},
            false);
}

void InteriorPath::visit_arm(const clang::Stmt* arm, const std::vector<std::string>& known,
                             bool holds) {
  if (arm == nullptr) {
    return;
  }
  const std::size_t outside = known_.size();
  for (const std::string& text : known) {
    known_.push_back({text, holds});
  }
  visit(*arm, false);
  known_.resize(outside);
}

/// A flag that the condition decides is not needed where no more than decided conditions use it.
void InteriorPath::visit_definition(const clang::DeclStmt& definition) {
  const clang::VarDecl* flag = flag_of(definition);
  if (flag == nullptr) {
    for (const clang::Stmt* child : definition.children()) {
      visit(*child, false);
    }
    return;
  }
  const Guard left = guard(*flag->getInit());
  if (left.decided) {
    decided_definitions_.push_back(&definition);
  } else {
    rewrite(*flag->getInit(), left);
  }
}

std::optional<bool> InteriorPath::known(const std::string& text) const {
  const auto found = std::ranges::find(known_, text, &Known::text);
  return found == known_.end() ? std::nullopt : std::optional(found->holds);
}

InteriorPath::Guard InteriorPath::guard(const clang::Expr& condition) {
  std::vector<const clang::Expr*> written;
  split(condition, written);
  Guard result;
  const bool holds = std::ranges::all_of(
      written, [&](const clang::Expr* part) { return add_part(*part, result); });
  result.changed |= result.parts.size() != written.size();
  if (!holds || result.parts.empty()) {
    for (const clang::VarDecl* variable : result.limited) {
      condition_.view().limit(*variable, std::nullopt);
    }
    result.decided = holds;
  }
  return result;
}

/// false: the part does not hold.
bool InteriorPath::add_part(const clang::Expr& part, Guard& guard) {
  if (condition_.implies({&part, true})) {
    return true;
  }
  if (condition_.implies({&part, false})) {
    return false;
  }
  const auto uniform = condition_.uniform({part.IgnoreParenImpCasts(), true});
  const auto span = span_of(kernel_, part.getSourceRange());
  const std::string text = uniform ? *uniform : span ? render(kernel_, *span) : "";
  if (const auto holds = known(text)) {
    return *holds;
  }
  if (std::ranges::find(guard.parts, text) != guard.parts.end()) {
    return true;
  }
  guard.parts.push_back(text);
  guard.changed |= uniform.has_value();
  if (uniform || (span && condition_.view().is_uniform(part))) {
    guard.uniform.push_back(text);
  }
  if (const auto limit = limit_of(kernel_, part)) {
    condition_.view().limit(*limit->first, limit->second);
    guard.limited.push_back(limit->first);
  }
  return true;
}

void InteriorPath::rewrite(const clang::Expr& condition, const Guard& guard) {
  const auto span = span_of(kernel_, condition.getSourceRange());
  if (guard.changed && span) {
    edits_.push_back({span->begin, span->length(), llvm::join(guard.parts, " && ")});
  }
}

void InteriorPath::remove(unsigned begin, unsigned end) {
  edits_.push_back({begin, end - begin, ""});
}

/// Nothing of `whole` but an arm of it, which may be none.
void InteriorPath::keep(const clang::Stmt& whole, const clang::Stmt* arm, bool in_braces) {
  const bool is_choice = isa<clang::Expr>(whole);
  const auto span = [&](const clang::Stmt& part) {
    return is_choice ? span_of(kernel_, part.getSourceRange()) : span_of(kernel_, part);
  };
  const auto outer = span(whole);
  auto inner = arm == nullptr ? std::nullopt : span(*arm);
  if (!outer || (arm != nullptr && !inner)) {
    return;
  }
  if (arm == nullptr) {
    edits_.push_back({outer->begin, outer->length(), in_braces ? "" : ";"});
    return;
  }
  if (in_braces && plain_braces(*arm) != nullptr) {
    inner = inside_braces(kernel_, *inner);
  }
  remove(outer->begin, inner->begin);
  remove(inner->end, outer->end);
  visit(*arm, false);
}

std::vector<Edit> InteriorPath::edits() const {
  std::vector<Edit> result = edits_;
  for (const clang::DeclStmt* definition : decided_definitions_) {
    const auto span = span_of(kernel_, *definition);
    const auto uses = references(kernel_, *flag_of(*definition));
    const bool unused = span && uses && std::ranges::all_of(*uses, [&](const Span& use) {
                          return std::ranges::any_of(edits_, [&](const Edit& edit) {
                            return edit.offset <= use.begin && use.end <= edit.offset + edit.length;
                          });
                        });
    if (unused) {
      result.push_back({span->begin, span->length(), ""});
    }
  }
  sort_edits(result);
  return result;
}

} // namespace evo
