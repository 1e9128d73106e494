#include "mutators/retyping.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/constants.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/analysis/warp_products.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/leaf_helpers.hpp"
#include "mutators/removal.hpp"
#include "mutators/tensor_type.hpp"

namespace evo {
namespace {

using Calls = std::vector<const clang::CallExpr*>;

class CallsOf : public SyntaxVisitor {
public:
  explicit CallsOf(const clang::FunctionDecl& callee) : callee_(callee) {}

  bool VisitCallExpr(clang::CallExpr* call) override {
    const clang::FunctionDecl* callee = call->getDirectCallee();
    if (callee != nullptr && callee->getCanonicalDecl() == callee_.getCanonicalDecl()) {
      found.push_back(call);
    }
    return true;
  }
  Calls found;

private:
  const clang::FunctionDecl& callee_;
};

Calls calls_in(const clang::Decl& code, const clang::FunctionDecl& callee) {
  CallsOf calls(callee);
  calls.TraverseDecl(const_cast<clang::Decl*>(&code));
  return calls.found;
}

std::array<std::string_view, 4> helpers_of(const TensorType& type) {
  return {type.multiply, type.round, type.low, type.high};
}

class Retyping {
public:
  Retyping(const Kernel& kernel, const clang::FunctionDecl& function, ThreadExchange& exchange)
      : kernel_(kernel), function_(function), exchange_(exchange), helpers_(kernel) {}

  std::vector<Rewrite> rewrites() {
    std::vector<Rewrite> result;
    if (!find()) {
      return result;
    }
    for (const TensorType& type : tensor_types()) {
      bool proved = &type == type_;
      for (std::int64_t parts = 1; parts <= type.most_parts && is_like(type); ++parts) {
        Evaluator evaluator(kernel_, {{parts_->declaration, parts}});
        if ((&type == type_ && parts == parts_->value) || check_rules(rules_, evaluator)) {
          continue;
        }
        auto edits = with(type, parts);
        proved = proved || (edits && exchange_.keeps_outputs(*edits));
        if (!edits || !proved) {
          break;
        }
        result.push_back({name_ + " " + strategy_name(type, parts), std::move(*edits)});
      }
    }
    return result;
  }

private:
  /// The one type that the function multiplies in, and the constant that counts its parts.
  bool find() {
    for (const TensorType& type : tensor_types()) {
      const clang::FunctionDecl* helper = helpers_.find(type.multiply);
      const Calls calls = helper == nullptr ? Calls{} : calls_in(function_, *helper);
      if (!calls.empty() && type_ != nullptr) {
        return false;
      }
      if (!calls.empty()) {
        type_ = &type;
        products_ = calls;
      }
    }
    return type_ != nullptr && find_parts() && find_name() && takes_all_numbers();
  }

  /// Numbers of the type are made where they are multiplied, or, as split_operands does, before the
  /// launch: then for this function, where no other one multiplies them.
  bool takes_all_numbers() {
    const clang::DeclContext& file = *kernel_.ast().getTranslationUnitDecl();
    const clang::FunctionDecl* multiply = helpers_.find(type_->multiply);
    bool alone = true;
    bool made_elsewhere = false;
    for (const clang::Decl* code : file.decls()) {
      const bool multiplies = !calls_in(*code, *multiply).empty();
      alone = alone && (!multiplies || code == &function_);
      made_elsewhere =
          made_elsewhere || (!multiplies && !calls_in(*code, *helpers_.find(type_->round)).empty());
    }
    code_ = alone ? static_cast<const clang::Decl*>(kernel_.ast().getTranslationUnitDecl())
                  : &function_;
    return alone || !made_elsewhere;
  }

  bool find_parts() {
    const clang::VarDecl* counted = count_of_parts(*products_.front());
    const bool same = std::ranges::all_of(products_, [&](const clang::CallExpr* product) {
      return count_of_parts(*product) == counted;
    });
    for (Constant& constant : find_constants(kernel_)) {
      if (same && constant.free && constant.declaration == counted) {
        parts_ = std::move(constant);
      }
    }
    return parts_.has_value();
  }

  /// The innermost loop over k around the first product.
  bool find_name() {
    for (const DeviceLoop& loop : device_loops(kernel_)) {
      if (loop.counted.step_value == type_->depth &&
          contains(*loop.counted.loop, *products_.front())) {
        name_ = loop.name;
      }
    }
    return !name_.empty();
  }

  bool is_like(const TensorType& type) const {
    return type.depth == type_->depth && type.numbers == type_->numbers;
  }

  std::optional<std::vector<Edit>> with(const TensorType& type, std::int64_t parts) const {
    std::vector<Edit> edits;
    if (parts != parts_->value) {
      const auto edit = set_constant(kernel_, *parts_, parts);
      if (!edit) {
        return std::nullopt;
      }
      edits.push_back(*edit);
    }
    try {
      if (&type != type_) {
        exchange_helpers(type, edits);
      }
    } catch (const CannotWrite&) {
      return std::nullopt;
    }
    sort_edits(edits);
    return edits;
  }

  /// Calls another type's helpers, and removes those that nothing calls any more.
  void exchange_helpers(const TensorType& type, std::vector<Edit>& edits) const {
    LeafHelpers helpers(kernel_);
    Removal removal(kernel_);
    for (std::size_t i = 0; i < helpers_of(type).size(); ++i) {
      const clang::FunctionDecl* old = helpers_.find(helpers_of(*type_)[i]);
      const Calls calls = old == nullptr ? Calls{} : calls_in(*code_, *old);
      for (const clang::CallExpr* call : calls) {
        const Span callee = checked(span_of(kernel_, call->getCallee()->getSourceRange()));
        edits.push_back({callee.begin, callee.length(), helpers.use(helpers_of(type)[i])});
      }
      if (old != nullptr &&
          calls.size() == calls_in(*kernel_.ast().getTranslationUnitDecl(), *old).size()) {
        removal.function(*old);
      }
    }
    std::ranges::copy(helpers.edits(), std::back_inserter(edits));
    std::ranges::copy(removal.edits(), std::back_inserter(edits));
  }

  const Kernel& kernel_;
  const clang::FunctionDecl& function_;
  ThreadExchange& exchange_;
  const LeafHelpers helpers_; // of the file as it is
  const ConstantRules rules_ = find_rules(kernel_);
  const TensorType* type_ = nullptr;
  Calls products_;
  const clang::Decl* code_ = nullptr; // that calls the helpers
  std::optional<Constant> parts_;
  std::string name_; // the loop's
};

} // namespace

std::vector<Rewrite> retyped_products(const Kernel& kernel, const clang::FunctionDecl& function,
                                      ThreadExchange& exchange) {
  return Retyping(kernel, function, exchange).rewrites();
}

} // namespace evo
