#include "mutators/analysis/constants.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

const clang::IntegerLiteral* literal_of(const clang::Expr& initialiser) {
  return clang::dyn_cast<clang::IntegerLiteral>(initialiser.IgnoreParenImpCasts());
}

class ConstantCollector : public SyntaxVisitor {
public:
  explicit ConstantCollector(const Kernel& kernel) : kernel_(kernel), evaluator_(kernel) {}

  bool VisitVarDecl(clang::VarDecl* variable) override {
    const bool constant = variable->isConstexpr() && variable->isFileVarDecl() &&
                          variable->getType()->isIntegerType() && variable->hasInit() &&
                          !variable->getInit()->isValueDependent();
    if (!constant || !span_of(kernel_, variable->getSourceRange())) {
      return true;
    }
    const clang::Expr& initialiser = *variable->getInit();
    const auto value = evaluator_.value(initialiser);
    if (const auto* known = std::get_if<std::int64_t>(&value)) {
      constants.push_back({.declaration = variable,
                           .initialiser = &initialiser,
                           .name = variable->getNameAsString(),
                           .value = *known,
                           .free = literal_of(initialiser) != nullptr});
    }
    return true;
  }

  std::vector<Constant> constants;

private:
  const Kernel& kernel_;
  Evaluator evaluator_;
};

class RuleCollector : public SyntaxVisitor {
public:
  explicit RuleCollector(const Kernel& kernel) : kernel_(kernel), evaluator_(kernel) {}

  bool VisitStaticAssertDecl(clang::StaticAssertDecl* assertion) override {
    rules.assertions.push_back(assertion->getAssertExpr());
    return true;
  }

  bool VisitBinaryOperator(clang::BinaryOperator* operation) override {
    const auto& sources = kernel_.ast().getSourceManager();
    if (operation->getOpcode() != clang::BO_Div || operation->isValueDependent() ||
        !operation->getType()->isIntegerType() ||
        !sources.isInMainFile(sources.getExpansionLoc(operation->getBeginLoc()))) {
      return true;
    }
    const auto above = evaluator_.value(*operation->getLHS());
    const auto below = evaluator_.value(*operation->getRHS());
    const auto* dividend = std::get_if<std::int64_t>(&above);
    const auto* divisor = std::get_if<std::int64_t>(&below);
    if (dividend != nullptr && divisor != nullptr && *divisor != 0 && *dividend % *divisor == 0) {
      rules.exact_divisions.emplace_back(operation->getLHS(), operation->getRHS());
    }
    return true;
  }

  bool TraverseImplicitCastExpr(clang::ImplicitCastExpr* cast) override { return traverse(cast); }
  bool TraverseCStyleCastExpr(clang::CStyleCastExpr* cast) override { return traverse(cast); }
  bool TraverseCXXStaticCastExpr(clang::CXXStaticCastExpr* cast) override { return traverse(cast); }
  bool TraverseCXXFunctionalCastExpr(clang::CXXFunctionalCastExpr* cast) override {
    return traverse(cast);
  }

  bool VisitDeclRefExpr(clang::DeclRefExpr* reference) override {
    if (in_float_ > 0 && !reference->isValueDependent() && reference->getType()->isIntegerType()) {
      const auto value = evaluator_.value(*reference);
      if (const auto* known = std::get_if<std::int64_t>(&value)) {
        rules.numbers.emplace_back(reference, *known);
      }
    }
    return true;
  }

  ConstantRules rules;

private:
  bool traverse(clang::CastExpr* cast) {
    const bool to_float = cast->getCastKind() == clang::CK_IntegralToFloating;
    in_float_ += to_float ? 1 : 0;
    TraverseStmt(cast->getSubExpr());
    in_float_ -= to_float ? 1 : 0;
    return true;
  }

  const Kernel& kernel_;
  Evaluator evaluator_;
  int in_float_ = 0; // casts to a float around the current node
};

} // namespace

std::vector<Constant> find_constants(const Kernel& kernel) {
  ConstantCollector collector(kernel);
  collector.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  return collector.constants;
}

std::optional<Edit> set_constant(const Kernel& kernel, const Constant& constant,
                                 std::int64_t value) {
  const auto* literal = literal_of(*constant.initialiser);
  const auto span = literal != nullptr ? span_of(kernel, literal->getSourceRange()) : std::nullopt;
  return span ? std::optional(Edit{span->begin, span->length(), std::to_string(value)})
              : std::nullopt;
}

ConstantRules find_rules(const Kernel& kernel) {
  RuleCollector collector(kernel);
  collector.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  return collector.rules;
}

std::optional<Failure> check_rules(const ConstantRules& rules, Evaluator& evaluator) {
  for (const clang::Expr* assertion : rules.assertions) {
    const auto holds = evaluator.value(*assertion);
    if (const auto* failure = std::get_if<Failure>(&holds)) {
      return *failure;
    }
    if (std::get<std::int64_t>(holds) == 0) {
      return Failure{Failure::Kind::Fault, "a static_assert fails"};
    }
  }
  for (const auto& [dividend, divisor] : rules.exact_divisions) {
    const auto above = evaluator.value(*dividend);
    const auto below = evaluator.value(*divisor);
    for (const auto* side : {&above, &below}) {
      if (const auto* failure = std::get_if<Failure>(side)) {
        return *failure;
      }
    }
    const std::int64_t by = std::get<std::int64_t>(below);
    if (by == 0 || std::get<std::int64_t>(above) % by != 0) {
      return Failure{Failure::Kind::Fault, "a division between constants leaves a remainder"};
    }
  }
  for (const auto& [number, value] : rules.numbers) {
    const auto now = evaluator.value(*number);
    const auto* known = std::get_if<std::int64_t>(&now);
    if (known == nullptr || *known != value) {
      return Failure{Failure::Kind::Fault, "a constant that the results depend on changes"};
    }
  }
  return std::nullopt;
}

} // namespace evo
