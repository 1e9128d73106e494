#include "mutators/constant_placement.hpp"

#include <clang/AST/Decl.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/syntax_visitor.hpp"

namespace evo {
namespace {

class MentionedConstants : public SyntaxVisitor {
public:
  bool VisitDeclRefExpr(clang::DeclRefExpr* reference) override {
    const auto* variable = clang::dyn_cast<clang::VarDecl>(reference->getDecl());
    if (variable != nullptr && variable->isFileVarDecl()) {
      found.push_back(variable);
    }
    return true;
  }

  std::vector<const clang::VarDecl*> found;
};

} // namespace

std::vector<const clang::VarDecl*> mentioned_constants(const clang::Stmt& expression) {
  MentionedConstants visitor;
  visitor.TraverseStmt(const_cast<clang::Stmt*>(&expression));
  return std::move(visitor.found);
}

std::optional<Span> lines_of(const Kernel& kernel, const clang::VarDecl& constant) {
  auto span = span_of(kernel, constant.getSourceRange());
  if (!span || line_begin(kernel, span->begin) != span->begin ||
      kernel.source().compare(span->end, 2, ";\n") != 0) {
    return std::nullopt;
  }
  span->end += 2;
  return span;
}

std::optional<unsigned> offset_behind(const Kernel& kernel,
                                      const std::vector<const clang::VarDecl*>& constants,
                                      const clang::Decl& user) {
  std::optional<Span> latest;
  for (const clang::VarDecl* constant : constants) {
    const auto lines = lines_of(kernel, *constant);
    const bool visible = constant->getDeclContext()->Equals(user.getDeclContext());
    if (lines && visible && (!latest || latest->begin < lines->begin)) {
      latest = lines;
    }
  }
  return latest ? std::optional(latest->end) : offset_before(kernel, user);
}

} // namespace evo
