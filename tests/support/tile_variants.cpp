#include "tests/support/tile_variants.hpp"

#include <bit>
#include <optional>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>

#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/rewrite.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

std::optional<long> evaluate(const clang::Expr* expr, const clang::ASTContext& ast) {
  clang::Expr::EvalResult result;
  return expr->EvaluateAsInt(result, ast) ? std::optional(result.Val.getInt().getExtValue())
                                          : std::nullopt;
}

struct Constant {
  std::string name;
  unsigned value = 0;
  Edit literal;
};

class Constants : public SyntaxVisitor {
public:
  explicit Constants(const clang::ASTContext& ast) : ast_(ast) {}

  bool VisitVarDecl(clang::VarDecl* variable) override {
    if (!variable->isConstexpr() || !variable->isFileVarDecl()) {
      return true;
    }
    const auto* literal =
        clang::dyn_cast<clang::IntegerLiteral>(variable->getInit()->IgnoreParenImpCasts());
    if (literal != nullptr) {
      const clang::SourceManager& sources = ast_.getSourceManager();
      const clang::SourceLocation at = literal->getLocation();
      const unsigned length = clang::Lexer::MeasureTokenLength(at, sources, ast_.getLangOpts());
      free.push_back({variable->getName().str(),
                      static_cast<unsigned>(literal->getValue().getZExtValue()),
                      {sources.getFileOffset(at), length, ""}});
    }
    return true;
  }

  bool VisitBinaryOperator(clang::BinaryOperator* operation) override {
    if (operation->getOpcode() == clang::BO_Div && !operation->isValueDependent()) {
      const auto above = evaluate(operation->getLHS(), ast_);
      const auto below = evaluate(operation->getRHS(), ast_);
      divides = divides && (!above || !below || *below == 0 || *above % *below == 0);
    }
    return true;
  }

  std::vector<Constant> free;
  bool divides = true;

private:
  const clang::ASTContext& ast_;
};

Constants constants(const Kernel& kernel) {
  Constants visitor(kernel.ast());
  visitor.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  return visitor;
}

} // namespace

std::vector<TileVariant> tile_variants(const std::string& source) {
  std::vector<TileVariant> variants;
  const Kernel kernel = parse(source);
  for (const Constant& constant : constants(kernel).free) {
    if (!std::has_single_bit(constant.value) || constant.value < 4) {
      continue;
    }
    for (const unsigned value : {constant.value / 2, constant.value * 2}) {
      Edit edit = constant.literal;
      edit.text = std::to_string(value);
      std::string variant = apply_edits(source, {edit});
      if (parses(variant) && constants(parse(variant)).divides) {
        variants.push_back({constant.name + " = " + edit.text, std::move(variant)});
      }
    }
  }
  return variants;
}

} // namespace evo::test
