#include "mutators/analysis/product_core.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/loop_nest.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// for (c) fragment[c] = load;
struct Filling {
  const clang::Expr* load = nullptr;
  const clang::VarDecl* counter = nullptr;
  std::int64_t elements = 0;
};

const clang::ArraySubscriptExpr* subscript(const clang::Expr* expr) {
  return dyn_cast<clang::ArraySubscriptExpr>(expr->IgnoreParenImpCasts());
}

/// array[counter] of a local array: the array.
const clang::VarDecl* element(const clang::Expr* expr, const clang::VarDecl& counter) {
  const auto* place = subscript(expr);
  const clang::VarDecl* array = place == nullptr ? nullptr : variable_of(place->getBase());
  return array != nullptr && array->hasLocalStorage() && variable_of(place->getIdx()) == &counter
             ? array
             : nullptr;
}

bool is_shared_float(const clang::Expr& expr) {
  return subscript(&expr) != nullptr && memory_of(expr).space == Space::Shared &&
         expr.getType()->isSpecificBuiltinType(clang::BuiltinType::Float);
}

/// Reads the body of one loop.
class Reader {
public:
  Reader(const Kernel& kernel, const DeviceLoop& loop) : kernel_(kernel) { core_.k = loop; }

  std::optional<ProductCore> read() {
    const CountedLoop& loop = core_.k.counted;
    const auto* braces = dyn_cast<clang::CompoundStmt>(loop.loop->getBody());
    const bool from_zero = constant_value(kernel_, *loop.start) == 0 && loop.step_value == 1 &&
                           trip_count(kernel_, loop).has_value();
    if (!from_zero) {
      return std::nullopt;
    }
    if (braces == nullptr) {
      return statement(loop.loop->getBody()) && done_ ? std::optional(core_) : std::nullopt;
    }
    return std::ranges::all_of(braces->body(), [&](const auto* part) { return statement(part); }) &&
                   done_
               ? std::optional(core_)
               : std::nullopt;
  }

private:
  bool statement(const clang::Stmt* part) {
    if (const auto* definition = dyn_cast<clang::DeclStmt>(part)) {
      const auto* variable = definition->isSingleDecl()
                                 ? dyn_cast<clang::VarDecl>(definition->getSingleDecl())
                                 : nullptr;
      return variable != nullptr && !variable->hasInit() && !done_;
    }
    const auto nest = loop_nest(kernel_, part);
    const auto* operation =
        nest ? clang::dyn_cast_or_null<clang::BinaryOperator>(only_expression(*nest)) : nullptr;
    if (operation == nullptr || done_) {
      return false;
    }
    return nest->loops.size() == 1 ? filling(nest->loops.front(), *operation)
                                   : nest->loops.size() == 2 && product(*nest, *operation);
  }

  static const clang::Expr* only_expression(const LoopNest& nest) {
    const auto* expression = dyn_cast<clang::Expr>(nest.code);
    return expression != nullptr ? expression->IgnoreParens() : nullptr;
  }

  bool filling(const CountedLoop& loop, const clang::BinaryOperator& assignment) {
    const clang::VarDecl* fragment = element(assignment.getLHS(), *loop.counter);
    const clang::Expr* load = assignment.getRHS()->IgnoreParenImpCasts();
    if (assignment.getOpcode() != clang::BO_Assign || fragment == nullptr ||
        !is_shared_float(*load)) {
      return false;
    }
    return fillings_.try_emplace(fragment, Filling{load, loop.counter, *trip_count(kernel_, loop)})
        .second;
  }

  bool product(const LoopNest& nest, const clang::BinaryOperator& update) {
    const auto* place = subscript(update.getLHS());
    const auto* factors = dyn_cast<clang::BinaryOperator>(update.getRHS()->IgnoreParenImpCasts());
    if (update.getOpcode() != clang::BO_AddAssign || place == nullptr || factors == nullptr ||
        factors->getOpcode() != clang::BO_Mul) {
      return false;
    }
    const auto of_index = [&](const clang::Expr* index) -> const CountedLoop* {
      const auto loop = std::ranges::find(nest.loops, variable_of(index), &CountedLoop::counter);
      return loop == nest.loops.end() ? nullptr : &*loop;
    };
    const auto* row_place = subscript(place->getBase());
    const CountedLoop* rows = row_place == nullptr ? nullptr : of_index(row_place->getIdx());
    const CountedLoop* columns = of_index(place->getIdx());
    if (rows == nullptr || columns == nullptr || rows == columns) {
      return false;
    }
    core_.rows = *rows;
    core_.columns = *columns;
    core_.sum = variable_of(row_place->getBase());
    if (core_.sum == nullptr || !core_.sum->hasLocalStorage()) {
      return false;
    }
    done_ = factors_are(factors->getLHS(), factors->getRHS()) ||
            factors_are(factors->getRHS(), factors->getLHS());
    return done_;
  }

  bool factors_are(const clang::Expr* left, const clang::Expr* right) {
    const auto of_row = factor(left, core_.rows, core_.columns);
    const auto of_column = factor(right, core_.columns, core_.rows);
    if (of_row && of_column) {
      core_.left = *of_row;
      core_.right = *of_column;
    }
    return of_row && of_column;
  }

  std::optional<Factor> factor(const clang::Expr* expr, const CountedLoop& own,
                               const CountedLoop& other) const {
    const clang::Expr* read = expr->IgnoreParenImpCasts();
    if (const auto known = fillings_.find(element(read, *own.counter)); known != fillings_.end()) {
      const auto& [load, counter, elements] = known->second;
      return elements == trip_count(kernel_, own) && mentions(*load, *core_.k.counted.counter)
                 ? std::optional(Factor{load, counter, known->first})
                 : std::nullopt;
    }
    return is_shared_float(*read) && mentions(*read, *own.counter) &&
                   !mentions(*read, *other.counter) && mentions(*read, *core_.k.counted.counter)
               ? std::optional(Factor{read, own.counter, nullptr})
               : std::nullopt;
  }

  const Kernel& kernel_;
  ProductCore core_;
  std::map<const clang::VarDecl*, Filling> fillings_;
  bool done_ = false;
};

} // namespace

std::vector<ProductCore> product_cores(const Kernel& kernel, const clang::FunctionDecl& function) {
  std::vector<ProductCore> result;
  for (const DeviceLoop& loop : device_loops(kernel)) {
    if (loop.function == &function) {
      if (auto core = Reader(kernel, loop).read()) {
        result.push_back(std::move(*core));
      }
    }
  }
  return result;
}

std::int64_t products_per_step(const Kernel& kernel, const ProductCore& core) {
  return trip_count(kernel, core.rows).value_or(0) * trip_count(kernel, core.columns).value_or(0);
}

} // namespace evo
