#include "mutators/render.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>

namespace evo {
namespace {

/// The statement that a statement's text ends with: the innermost body of loops and branches.
const clang::Stmt& last_part(const clang::Stmt& statement) {
  if (const auto* loop = llvm::dyn_cast<clang::ForStmt>(&statement)) {
    return last_part(*loop->getBody());
  }
  if (const auto* loop = llvm::dyn_cast<clang::WhileStmt>(&statement)) {
    return last_part(*loop->getBody());
  }
  if (const auto* branch = llvm::dyn_cast<clang::IfStmt>(&statement)) {
    return last_part(branch->getElse() != nullptr ? *branch->getElse() : *branch->getThen());
  }
  if (const auto* attributed = llvm::dyn_cast<clang::AttributedStmt>(&statement)) {
    return last_part(*attributed->getSubStmt());
  }
  return statement;
}

} // namespace

std::optional<Span> span_of(const Kernel& kernel, clang::SourceRange range) {
  const clang::ASTContext& ast = kernel.ast();
  const clang::SourceManager& sources = ast.getSourceManager();
  if (range.isInvalid() || range.getBegin().isMacroID() || range.getEnd().isMacroID() ||
      !sources.isInMainFile(range.getBegin()) || !sources.isInMainFile(range.getEnd())) {
    return std::nullopt;
  }
  const auto end = clang::Lexer::getLocForEndOfToken(range.getEnd(), 0, sources, ast.getLangOpts());
  return Span{sources.getFileOffset(range.getBegin()), sources.getFileOffset(end)};
}

std::optional<Span> span_of(const Kernel& kernel, const clang::Stmt& statement) {
  auto span = span_of(kernel, statement.getSourceRange());
  const clang::Stmt& last = last_part(statement);
  if (!span || llvm::isa<clang::CompoundStmt, clang::DeclStmt, clang::NullStmt>(last)) {
    return span;
  }
  const std::size_t next = kernel.source().find_first_not_of(" \t\n\r", span->end);
  if (next != std::string::npos && kernel.source()[next] == ';') {
    span->end = static_cast<unsigned>(next) + 1;
  }
  return span;
}

std::string render(const Kernel& kernel, Span span, const std::vector<Edit>& edits) {
  std::vector<Edit> inside;
  for (const Edit& edit : edits) {
    if (span.begin <= edit.offset && edit.offset + edit.length <= span.end) {
      inside.push_back({edit.offset - span.begin, edit.length, edit.text});
    }
  }
  sort_edits(inside);
  return apply_edits(std::string_view(kernel.source()).substr(span.begin, span.length()), inside);
}

std::optional<std::string> operand(const Kernel& kernel, const clang::Expr& expr, Binding binding,
                                   const std::vector<Edit>& edits) {
  const auto span = span_of(kernel, expr.getSourceRange());
  if (!span) {
    return std::nullopt;
  }
  const clang::Expr* written = expr.IgnoreImplicit();
  const auto* operation = llvm::dyn_cast<clang::BinaryOperator>(written);
  const bool loose = operation == nullptr
                         ? llvm::isa<clang::AbstractConditionalOperator>(written)
                         : !(binding == Binding::Sum && operation->isAdditiveOp()) &&
                               !(binding != Binding::Operand && operation->isMultiplicativeOp());
  const std::string text = render(kernel, *span, edits);
  return loose ? "(" + text + ")" : text;
}

unsigned line_begin(const Kernel& kernel, unsigned offset) {
  const std::size_t newline = kernel.source().rfind('\n', offset == 0 ? 0 : offset - 1);
  return offset == 0 || newline == std::string::npos ? 0 : static_cast<unsigned>(newline) + 1;
}

std::optional<unsigned> offset_before(const Kernel& kernel, const clang::Decl& declaration) {
  const clang::SourceManager& sources = kernel.ast().getSourceManager();
  clang::SourceLocation first = sources.getExpansionLoc(declaration.getBeginLoc());
  for (const clang::Attr* attribute : declaration.attrs()) { // __global__ is a macro
    first = std::min(first, sources.getExpansionLoc(attribute->getLocation()));
  }
  const auto* linkage = llvm::dyn_cast<clang::LinkageSpecDecl>(declaration.getLexicalDeclContext());
  if (linkage != nullptr && !linkage->hasBraces()) {
    first = linkage->getBeginLoc();
  }
  if (!sources.isInMainFile(first)) {
    return std::nullopt;
  }
  const std::string& source = kernel.source();
  unsigned offset = line_begin(kernel, sources.getFileOffset(first));
  while (offset > 0) {
    const unsigned above = line_begin(kernel, offset - 1);
    if (source.compare(source.find_first_not_of(" \t", above), 2, "//") != 0) {
      break;
    }
    offset = above;
  }
  return offset;
}

std::optional<Span> pragma_line(const Kernel& kernel, const clang::Attr& pragma) {
  const auto token = span_of(kernel, clang::SourceRange(pragma.getLocation()));
  if (!token) {
    return std::nullopt;
  }
  const std::string& source = kernel.source();
  const unsigned begin = line_begin(kernel, token->begin);
  const std::size_t newline = source.find('\n', begin);
  const bool whole = newline != std::string::npos && source[newline - 1] != '\\' &&
                     source[source.find_first_not_of(" \t", begin)] == '#';
  return whole ? std::optional(Span{begin, static_cast<unsigned>(newline) + 1}) : std::nullopt;
}

} // namespace evo
