// From AST nodes to the source text they were parsed from, and back as edits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace clang {
class Attr;
class Decl;
class Expr;
class SourceRange;
class Stmt;
} // namespace clang

namespace evo {

/// Bytes [begin, end) of Kernel::source().
struct Span {
  unsigned begin = 0;
  unsigned end = 0;

  unsigned length() const { return end - begin; }
  bool contains(unsigned offset) const { return begin <= offset && offset < end; }
  bool operator==(const Span&) const = default;
};

/// Where a range of tokens stands; nullopt outside the main file or inside a macro, where no edit
/// may go.
std::optional<Span> span_of(const Kernel& kernel, clang::SourceRange range);

/// The same for a statement with the `;` that Clang leaves out of an expression statement's range,
/// and for an expression.
std::optional<Span> span_of(const Kernel& kernel, const clang::Stmt& statement);

/// The text of a span after those of `edits` that lie in it; the others are ignored.
std::string render(const Kernel& kernel, Span span, const std::vector<Edit>& edits = {});

/// The loosest operation that needs no parentheses where an expression is put.
enum class Binding { Sum, Product, Operand };

/// The text of an expression, in parentheses where it binds less tightly than `binding`; nullopt
/// like span_of.
std::optional<std::string> operand(const Kernel& kernel, const clang::Expr& expr, Binding binding,
                                   const std::vector<Edit>& edits = {});

/// The offset of the first byte of the line that `offset` is on.
unsigned line_begin(const Kernel& kernel, unsigned offset);

/// The offset of the line before which something can be put before a declaration and the comment
/// on it; nullopt outside the main file.
std::optional<unsigned> offset_before(const Kernel& kernel, const clang::Decl& declaration);

/// The line of a pragma, with its newline; nullopt where it is not `#pragma` on one whole line.
std::optional<Span> pragma_line(const Kernel& kernel, const clang::Attr& pragma);

} // namespace evo
