#include "mutators/workspace_size.hpp"

#include <algorithm>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/evaluator.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// Finds the product that stands for a region.
class RegionSearch : public SyntaxVisitor {
public:
  RegionSearch(const Kernel& kernel, const std::vector<RegionExtent>& region)
      : kernel_(kernel), region_(region) {}

  /// With the values of the function's parameters at each of the region's sizes.
  void look(const clang::FunctionDecl& function, std::vector<Assignment> values) {
    if (const clang::Expr* bytes = bytes_returned(function)) {
      std::swap(values_, values);
      TraverseStmt(const_cast<clang::Expr*>(bytes));
      std::swap(values_, values);
    }
  }

  bool TraverseBinaryOperator(clang::BinaryOperator* operation) override {
    if (found == nullptr && operation->getOpcode() == clang::BO_Mul && is_region(*operation)) {
      found = operation;
    }
    return found != nullptr || SyntaxVisitor::TraverseBinaryOperator(operation);
  }
  bool TraverseCallExpr(clang::CallExpr* call) override {
    const clang::FunctionDecl* callee = call->getDirectCallee();
    const clang::FunctionDecl* body = callee == nullptr ? nullptr : callee->getDefinition();
    if (found == nullptr && body != nullptr) {
      look(*body, arguments(*call, *body));
    }
    return true;
  }

  const clang::BinaryOperator* found = nullptr;

private:
  std::optional<std::int64_t> value(const clang::Expr& expr, const Assignment& values) const {
    const auto result = Evaluator(kernel_, values).value(expr);
    const auto* known = std::get_if<std::int64_t>(&result);
    return known == nullptr ? std::nullopt : std::optional(*known);
  }

  std::vector<Assignment> arguments(const clang::CallExpr& call,
                                    const clang::FunctionDecl& function) const {
    std::vector<Assignment> result;
    for (const Assignment& values : values_) {
      Assignment& given = result.emplace_back();
      for (unsigned i = 0; i < function.getNumParams(); ++i) {
        if (const auto known = value(*call.getArg(i), values)) {
          given[function.getParamDecl(i)] = *known;
        }
      }
    }
    return result;
  }

  bool is_region(const clang::Expr& product) const {
    bool exact = false;
    for (std::size_t i = 0; i < region_.size(); ++i) {
      const auto bytes = value(product, values_[i]);
      if (!bytes || *bytes < region_[i].bytes) {
        return false;
      }
      exact = exact || *bytes == region_[i].bytes;
    }
    return exact;
  }

  const Kernel& kernel_;
  const std::vector<RegionExtent>& region_;
  std::vector<Assignment> values_;
};

/// The widest expression around `product` that is 0 where the product is: rounded up, too.
const clang::Expr& zero_around(const Kernel& kernel, const clang::Expr& product) {
  const clang::Expr* widest = &product;
  std::int64_t value = 0;
  for (const clang::Stmt* inner = &product;;) {
    const auto* around = clang::dyn_cast_or_null<clang::Expr>(parent_of(kernel, *inner));
    const auto* operation = clang::dyn_cast_or_null<clang::BinaryOperator>(around);
    const auto other = operation != nullptr && operation->getLHS() == inner
                           ? constant_value(kernel, *operation->getRHS())
                           : std::nullopt;
    const auto opcode = operation == nullptr ? clang::BO_Comma : operation->getOpcode();
    if (other && opcode == clang::BO_Add) {
      value += *other;
    } else if (other && opcode == clang::BO_Mul) {
      value *= *other;
    } else if (other && opcode == clang::BO_Div && *other > 0) {
      value /= *other;
    } else if (!clang::isa_and_nonnull<clang::ParenExpr, clang::ImplicitCastExpr>(around)) {
      return *widest;
    }
    widest = value == 0 ? around : widest;
    inner = around;
  }
}

/// A summand without the sum's sign, and anything else as 0.
std::optional<Edit> without(const Kernel& kernel, const clang::Expr& zero) {
  const auto span = span_of(kernel, zero.getSourceRange());
  const clang::Stmt* around = parent_of(kernel, zero);
  while (clang::isa_and_nonnull<clang::ImplicitCastExpr>(around)) {
    around = parent_of(kernel, *around);
  }
  const auto* sum = clang::dyn_cast_or_null<clang::BinaryOperator>(around);
  if (!span || sum == nullptr || sum->getOpcode() != clang::BO_Add) {
    return span ? std::optional(Edit{span->begin, span->length(), "0"}) : std::nullopt;
  }
  const auto left = span_of(kernel, sum->getLHS()->getSourceRange());
  const auto right = span_of(kernel, sum->getRHS()->getSourceRange());
  if (!left || !right) {
    return std::nullopt;
  }
  return left->contains(span->begin) ? Edit{left->begin, right->begin - left->begin, ""}
                                     : Edit{left->end, right->end - left->end, ""};
}

} // namespace

const clang::Expr* bytes_returned(const clang::FunctionDecl& workspace) {
  const auto* body = dyn_cast<clang::CompoundStmt>(workspace.getBody());
  const auto* bytes = body != nullptr && body->size() == 1
                          ? dyn_cast<clang::ReturnStmt>(body->body_front())
                          : nullptr;
  return bytes == nullptr ? nullptr : bytes->getRetValue();
}

const clang::ParmVarDecl* parameter_of_workspace(const clang::FunctionDecl& entry,
                                                 const clang::FunctionDecl& workspace,
                                                 const clang::ParmVarDecl& parameter) {
  const auto before = std::ranges::count_if(entry.parameters(), [&](const auto* other) {
    return other->getType()->isIntegerType() &&
           other->getFunctionScopeIndex() < parameter.getFunctionScopeIndex();
  });
  return before < workspace.getNumParams() ? workspace.getParamDecl(static_cast<unsigned>(before))
                                           : nullptr;
}

std::optional<Edit> without_region(const Kernel& kernel, const clang::FunctionDecl& workspace,
                                   const std::vector<RegionExtent>& region) {
  std::vector<Assignment> values;
  for (const RegionExtent& extent : region) {
    Assignment& given = values.emplace_back();
    for (unsigned i = 0; i < workspace.getNumParams() && i < extent.dims.size(); ++i) {
      given[workspace.getParamDecl(i)] = extent.dims[i];
    }
  }
  RegionSearch search(kernel, region);
  search.look(workspace, std::move(values));
  return search.found == nullptr ? std::nullopt
                                 : without(kernel, zero_around(kernel, *search.found));
}

} // namespace evo
