#include "mutators/analysis/loops.hpp"

#include <map>

#include <clang/AST/ASTContext.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

bool is_variable(const clang::Expr* expr, const clang::VarDecl* variable) {
  const auto* use = dyn_cast<clang::DeclRefExpr>(expr->IgnoreParenImpCasts());
  return use != nullptr && use->getDecl() == variable;
}

/// A variable that is only ever read is, in Clang's AST, always under an lvalue-to-rvalue cast.
class Uses : public clang::RecursiveASTVisitor<Uses> {
public:
  explicit Uses(const clang::VarDecl* variable) : variable_(variable) {}

  bool VisitDeclRefExpr(clang::DeclRefExpr* use) {
    all += use->getDecl() == variable_ ? 1 : 0;
    return true;
  }
  bool VisitImplicitCastExpr(clang::ImplicitCastExpr* cast) {
    const auto* use = dyn_cast<clang::DeclRefExpr>(cast->getSubExpr()->IgnoreParens());
    if (cast->getCastKind() == clang::CK_LValueToRValue && use != nullptr &&
        use->getDecl() == variable_) {
      ++reads;
    }
    return true;
  }

  int all = 0;
  int reads = 0;

private:
  const clang::VarDecl* variable_;
};

bool changes(const clang::Stmt* body, const clang::VarDecl* variable) {
  Uses uses(variable);
  uses.TraverseStmt(const_cast<clang::Stmt*>(body));
  return uses.all != uses.reads;
}

const clang::VarDecl* declared_in(const clang::Stmt* init) {
  const auto* declaration = clang::dyn_cast_or_null<clang::DeclStmt>(init);
  if (declaration == nullptr || !declaration->isSingleDecl()) {
    return nullptr;
  }
  const auto* variable = dyn_cast<clang::VarDecl>(declaration->getSingleDecl());
  const bool counts =
      variable != nullptr && variable->hasInit() && variable->getType()->isIntegerType();
  return counts ? variable : nullptr;
}

struct Increment {
  const clang::Expr* step = nullptr; // nullptr: 1
};

std::optional<Increment> increment_of(const clang::Expr* increment,
                                      const clang::VarDecl* variable) {
  if (increment == nullptr) {
    return std::nullopt;
  }
  if (const auto* unary = dyn_cast<clang::UnaryOperator>(increment)) {
    const bool counts = unary->isIncrementOp() && is_variable(unary->getSubExpr(), variable);
    return counts ? std::optional(Increment{}) : std::nullopt;
  }
  const auto* binary = dyn_cast<clang::BinaryOperator>(increment);
  if (binary == nullptr || binary->getOpcode() != clang::BO_AddAssign ||
      !is_variable(binary->getLHS(), variable)) {
    return std::nullopt;
  }
  return Increment{binary->getRHS()};
}

std::optional<long> constant(const clang::Expr* expr, const clang::ASTContext& ast) {
  clang::Expr::EvalResult result;
  const bool known = !expr->isValueDependent() && expr->EvaluateAsInt(result, ast);
  return known ? std::optional(result.Val.getInt().getExtValue()) : std::nullopt;
}

std::optional<long> trip_count(const CountedLoop& loop, bool inclusive,
                               const clang::ASTContext& ast) {
  const auto first = constant(loop.first, ast);
  const auto bound = constant(loop.bound, ast);
  const auto step = loop.step == nullptr ? std::optional(1L) : constant(loop.step, ast);
  if (!first || !bound || !step || *step <= 0) {
    return std::nullopt;
  }
  const long distance = *bound - *first + (inclusive ? 1 : 0);
  return distance <= 0 ? 0 : (distance + *step - 1) / *step;
}

class Collector : public clang::RecursiveASTVisitor<Collector> {
public:
  explicit Collector(const Kernel& kernel) : kernel_(kernel), ast_(kernel.ast()) {}

  bool TraverseFunctionDecl(clang::FunctionDecl* function) {
    const bool device =
        function->hasAttr<clang::CUDAGlobalAttr>() || function->hasAttr<clang::CUDADeviceAttr>();
    if (!device || !ast_.getSourceManager().isInMainFile(function->getLocation())) {
      return true;
    }
    function_ = function;
    return RecursiveASTVisitor::TraverseFunctionDecl(function);
  }

  bool VisitAttributedStmt(clang::AttributedStmt* statement) {
    const auto attributes = statement->getAttrs();
    attributes_[statement->getSubStmt()].assign(attributes.begin(), attributes.end());
    return true;
  }

  bool VisitForStmt(clang::ForStmt* loop) {
    const clang::VarDecl* variable = declared_in(loop->getInit());
    const auto* condition = clang::dyn_cast_or_null<clang::BinaryOperator>(loop->getCond());
    if (variable == nullptr || condition == nullptr ||
        (condition->getOpcode() != clang::BO_LT && condition->getOpcode() != clang::BO_LE) ||
        !is_variable(condition->getLHS(), variable)) {
      return true;
    }
    const auto increment = increment_of(loop->getInc(), variable);
    if (!increment || changes(loop->getBody(), variable) || !span_of(kernel_, *loop)) {
      return true;
    }
    CountedLoop found{.loop = loop,
                      .function = function_,
                      .variable = variable,
                      .first = variable->getInit(),
                      .bound = condition->getRHS(),
                      .step = increment->step,
                      .trip_count = std::nullopt,
                      .attributes = attributes_[loop],
                      .name = name(variable)};
    found.trip_count = trip_count(found, condition->getOpcode() == clang::BO_LE, ast_);
    loops.push_back(std::move(found));
    return true;
  }

  std::vector<CountedLoop> loops;

private:
  std::string name(const clang::VarDecl* variable) {
    const std::string plain = function_->getNameAsString() + "/" + variable->getNameAsString();
    const int ordinal = ++named_[plain];
    return ordinal == 1 ? plain : plain + "#" + std::to_string(ordinal);
  }

  const Kernel& kernel_;
  const clang::ASTContext& ast_;
  const clang::FunctionDecl* function_ = nullptr;
  std::map<const clang::Stmt*, std::vector<const clang::Attr*>> attributes_;
  std::map<std::string, int> named_;
};

} // namespace

std::vector<CountedLoop> counted_loops(const Kernel& kernel) {
  Collector collector(kernel);
  collector.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  return std::move(collector.loops);
}

} // namespace evo
