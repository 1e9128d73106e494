#include "mutators/analysis/references.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/syntax_visitor.hpp"

namespace evo {
namespace {

class ReferenceCollector : public SyntaxVisitor {
public:
  ReferenceCollector(const Kernel& kernel, const clang::ValueDecl& declaration)
      : kernel_(kernel), declaration_(declaration) {}

  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
    return add(use->getDecl(), use->getLocation());
  }
  bool VisitMemberExpr(clang::MemberExpr* use) override {
    return add(use->getMemberDecl(), use->getMemberLoc());
  }

  std::vector<Span> found;
  bool in_macro = false;

private:
  bool add(const clang::ValueDecl* used, clang::SourceLocation location) {
    if (used->getCanonicalDecl() == declaration_.getCanonicalDecl()) {
      const auto span = span_of(kernel_, clang::SourceRange(location));
      in_macro = in_macro || !span;
      found.push_back(span.value_or(Span{}));
    }
    return true;
  }

  const Kernel& kernel_;
  const clang::ValueDecl& declaration_;
};

} // namespace

std::optional<std::vector<Span>> references(const Kernel& kernel,
                                            const clang::ValueDecl& declaration) {
  ReferenceCollector collector(kernel, declaration);
  collector.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  if (collector.in_macro) {
    return std::nullopt;
  }
  // An expression may stand in the AST twice (x[i] += 1 once parsed, once analysed).
  std::ranges::sort(collector.found, {}, &Span::begin);
  const auto repeated = std::ranges::unique(collector.found);
  collector.found.erase(repeated.begin(), repeated.end());
  return std::move(collector.found);
}

bool is_used_once(const Kernel& kernel, const clang::FunctionDecl& function) {
  const auto uses = references(kernel, function);
  return uses && uses->size() == 1 + attribute_calls(kernel, function).size() &&
         function.getPreviousDecl() == nullptr && function.getMostRecentDecl() == &function;
}

} // namespace evo
