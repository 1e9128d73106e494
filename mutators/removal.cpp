#include "mutators/removal.hpp"

#include <algorithm>
#include <string>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>
#include <clang/Basic/CharInfo.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/inline_update.hpp"

namespace evo {
namespace {

/// Constants and structs, the last first: what names one stands behind it.
std::vector<const clang::NamedDecl*> declarations_of(const Kernel& kernel) {
  std::vector<const clang::NamedDecl*> found;
  for (const clang::Decl* decl : kernel.ast().getTranslationUnitDecl()->decls()) {
    const auto* variable = clang::dyn_cast<clang::VarDecl>(decl);
    const auto* record = clang::dyn_cast<clang::RecordDecl>(decl);
    const bool removable = (variable != nullptr && variable->isConstexpr()) ||
                           (record != nullptr && record->isThisDeclarationADefinition());
    if (removable && kernel.ast().getSourceManager().isInMainFile(decl->getLocation())) {
      found.insert(found.begin(), clang::cast<clang::NamedDecl>(decl));
    }
  }
  return found;
}

/// Where a word stands in a text, comments and pragmas included.
std::vector<unsigned> occurrences(const std::string& text, const std::string& word) {
  const auto in_word = [](char c) { return clang::isAsciiIdentifierContinue(c); };
  std::vector<unsigned> found;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !in_word(text[at - 1])) && (end == text.size() || !in_word(text[end]))) {
      found.push_back(static_cast<unsigned>(at));
    }
  }
  return found;
}

/// What stands right behind a quotient of constants and says that it leaves no remainder; nullptr
/// where nothing does.
const clang::StaticAssertDecl* assertion_of(const Kernel& kernel,
                                            const clang::NamedDecl& declaration) {
  const auto operation = [](const clang::Expr* expr, clang::BinaryOperatorKind kind) {
    const auto* found = clang::dyn_cast<clang::BinaryOperator>(expr->IgnoreParenImpCasts());
    return found != nullptr && found->getOpcode() == kind ? found : nullptr;
  };
  const auto* constant = clang::dyn_cast<clang::VarDecl>(&declaration);
  const auto* assertion = clang::dyn_cast_or_null<clang::StaticAssertDecl>(
      constant == nullptr ? nullptr : constant->getNextDeclInContext());
  const auto* quotient =
      assertion == nullptr ? nullptr : operation(constant->getInit(), clang::BO_Div);
  const auto* comparison =
      quotient == nullptr ? nullptr : operation(assertion->getAssertExpr(), clang::BO_EQ);
  const auto* remainder =
      comparison == nullptr ? nullptr : operation(comparison->getLHS(), clang::BO_Rem);
  return remainder != nullptr && same_expression(kernel, quotient->getRHS(), remainder->getRHS())
             ? assertion
             : nullptr;
}

/// A function from its first attribute on: __global__ is a macro.
Span whole(const Kernel& kernel, const clang::FunctionDecl& function) {
  const clang::SourceManager& sources = kernel.ast().getSourceManager();
  Span span = checked(span_of(kernel, function.getBody()->getSourceRange()));
  const auto start_at = [&](clang::SourceLocation begin) {
    const clang::SourceLocation written = sources.getExpansionLoc(begin);
    if (written.isValid() && sources.isInMainFile(written)) { // implicit attributes stand nowhere
      span.begin = std::min(span.begin, sources.getFileOffset(written));
    }
  };
  start_at(function.getBeginLoc());
  for (const clang::Attr* attribute : function.attrs()) {
    start_at(attribute->getLocation());
  }
  return span;
}

} // namespace

void Removal::function(const clang::FunctionDecl& function) {
  lines(whole(kernel_, function), true);
  for (const clang::CallExpr* call : attribute_calls(kernel_, function)) {
    if (!clang::isa_and_nonnull<clang::CompoundStmt>(parent_of(kernel_, *call))) {
      throw CannotWrite{};
    }
    statement(*call);
  }
}

void Removal::statement(const clang::Stmt& statement) {
  statements_.push_back(checked(span_of(kernel_, statement)));
  lines(statements_.back(), false);
}

void Removal::unneeded_declarations(const std::set<const clang::ValueDecl*>& needed) {
  const auto goes = [&](unsigned use) { return removes(use); };
  const auto in_statement = [&](unsigned use) {
    return std::ranges::any_of(statements_, [&](Span span) { return span.contains(use); });
  };
  for (const clang::NamedDecl* declaration : declarations_of(kernel_)) {
    const Span definition = checked(span_of(kernel_, declaration->getSourceRange()));
    const auto uses = occurrences(kernel_.source(), declaration->getNameAsString());
    const bool is_struct = clang::isa<clang::RecordDecl>(declaration);
    const bool concerned =
        is_struct ? std::ranges::any_of(uses, in_statement) : std::ranges::any_of(uses, goes);
    const bool unneeded =
        concerned && !needed.contains(clang::dyn_cast<clang::ValueDecl>(declaration)) &&
        std::ranges::all_of(uses,
                            [&](unsigned use) { return definition.contains(use) || goes(use); });
    if (unneeded && declaration_alone(definition)) {
      const clang::StaticAssertDecl* assertion = assertion_of(kernel_, *declaration);
      if (assertion != nullptr) {
        declaration_alone(checked(span_of(kernel_, assertion->getSourceRange())));
      }
    }
  }
}

/// Removes it with its semicolon; false for one of several declared together.
bool Removal::declaration_alone(Span span) {
  const std::size_t end = kernel_.source().find_first_not_of(" \t\n", span.end);
  if (kernel_.source()[end] != ';') {
    return false;
  }
  lines({span.begin, static_cast<unsigned>(end) + 1}, false);
  return true;
}

bool Removal::removes(unsigned offset) const {
  return std::ranges::any_of(removed_, [&](Span span) { return span.contains(offset); });
}

/// Removes whole lines where the span has them to itself.
void Removal::lines(Span span, bool with_comment) {
  const std::string& source = kernel_.source();
  const unsigned line = line_begin(kernel_, span.begin);
  if (source.find_first_not_of(" \t", line) == std::size_t{span.begin}) {
    span.begin = line;
  }
  while (with_comment && span.begin != 0) {
    const unsigned above = line_begin(kernel_, span.begin - 1);
    if (source.compare(above, 2, "//") != 0) {
      break;
    }
    span.begin = above;
  }
  if (span.end < source.size() && source[span.end] == '\n') {
    ++span.end;
  }
  removed_.push_back(span);
  edits_.push_back({span.begin, span.length(), ""});
}

} // namespace evo
