#include "mutators/analysis/direct_epilogue.hpp"

#include <algorithm>
#include <functional>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/element_stores.hpp"
#include "mutators/analysis/exchange.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/hinted_access.hpp"
#include "mutators/analysis/loop_nest.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/plain_assignment.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

/// The element that a place or a pointer begins at: Y[i], *reinterpret_cast<float4*>(&Y[i]), and
/// the pointer in it.
const clang::ArraySubscriptExpr* first_element(const clang::Expr* place) {
  place = place->IgnoreParenCasts();
  const auto* unary = dyn_cast<clang::UnaryOperator>(place);
  return unary != nullptr ? first_element(unary->getSubExpr())
                          : dyn_cast<clang::ArraySubscriptExpr>(place);
}

const clang::Stmt* without_cleanups(const clang::Stmt* statement) {
  const auto* cleanups = dyn_cast<clang::ExprWithCleanups>(statement);
  return cleanups == nullptr ? statement : cleanups->getSubExpr();
}

/// The store that a statement is, but for its offset.
std::optional<ResultStore> result_store(const Kernel& kernel, const clang::Stmt* statement) {
  const clang::Stmt* bare = without_cleanups(statement);
  const auto hinted = hinted_store(bare);
  const auto assignment = plain_assignment(bare);
  if (!hinted && !assignment) {
    return std::nullopt;
  }
  const clang::Expr* place = hinted ? hinted->place : assignment->place;
  const clang::Expr* value = hinted ? hinted->value : assignment->value;
  const auto* element = first_element(place);
  if (element == nullptr || !isa<clang::DeclRefExpr>(element->getBase()->IgnoreParenImpCasts()) ||
      !element->getBase()->IgnoreParenImpCasts()->getType()->isPointerType() ||
      !element->getType()->isSpecificBuiltinType(clang::BuiltinType::Float)) {
    return std::nullopt;
  }
  const std::int64_t bytes =
      kernel.ast().getTypeSizeInChars(value->getType().getNonReferenceType()).getQuantity();
  const std::int64_t single = kernel.ast().getTypeSizeInChars(element->getType()).getQuantity();
  return ResultStore{statement, element, value, bytes / single, 0};
}

class EpilogueReader {
public:
  EpilogueReader(const Kernel& kernel, const ThreadBlock& block) : kernel_(kernel), block_(block) {}

  std::optional<DirectEpilogue> read(const clang::Stmt* nest) {
    found_.nest = nest;
    const bool written = take_loops(nest) && take_stores(*found_.action) &&
                         !found_.stores.empty() && take_coordinates() && stores_tile_once();
    return written ? std::optional(std::move(found_)) : std::nullopt;
  }

private:
  bool take_loops(const clang::Stmt* statement) {
    while (const auto* loop = dyn_cast<clang::ForStmt>(without_pragmas(statement))) {
      const auto counted = counted_loop(kernel_, *loop);
      if (!counted || !constant_value(kernel_, *counted->start) || !trip_count(kernel_, *counted)) {
        return false;
      }
      found_.loops.push_back(*counted);
      statement = only_statement(loop->getBody());
    }
    const auto* braces = dyn_cast<clang::CompoundStmt>(statement);
    if (found_.loops.empty() || braces == nullptr || braces->size() < 2) {
      return false;
    }
    for (const clang::Stmt* inner : braces->body()) {
      const auto* definition = dyn_cast<clang::DeclStmt>(inner);
      if (inner == braces->body_back()) {
        found_.action = inner;
      } else if (definition != nullptr && definition->isSingleDecl()) {
        found_.definitions.push_back(definition);
      } else {
        return false;
      }
    }
    return true;
  }

  /// The action's stores in order. Anything else in it computes.
  bool take_stores(const clang::Stmt& code) {
    if (const auto* braces = dyn_cast<clang::CompoundStmt>(&code)) {
      return std::ranges::all_of(braces->body(),
                                 [this](const clang::Stmt* inner) { return take_stores(*inner); });
    }
    if (const auto* branch = dyn_cast<clang::IfStmt>(&code)) {
      return !branch->hasInitStorage() && !branch->hasVarStorage() && !branch->isConstexpr() &&
             take_stores(*branch->getThen()) &&
             (branch->getElse() == nullptr || take_stores(*branch->getElse()));
    }
    auto store = result_store(kernel_, &code);
    return !store || take_store(*store);
  }

  bool take_store(ResultStore store) {
    const auto index = element_index(kernel_, *store.element->getIdx());
    const clang::VarDecl* row = index ? defined_here(*index->row) : nullptr;
    const clang::VarDecl* column = nullptr;
    for (const clang::Expr* summand : index ? index->column : std::vector<const clang::Expr*>{}) {
      const auto constant = constant_value(kernel_, *summand);
      if (!constant && column != nullptr) {
        return false;
      }
      column = constant ? column : defined_here(*summand);
      store.offset += constant.value_or(0);
    }
    if (row == nullptr || column == nullptr ||
        (!found_.stores.empty() &&
         (row != found_.row.variable || column != found_.column.variable))) {
      return false;
    }
    found_.row.variable = row;
    found_.column.variable = column;
    found_.stores.push_back(store);
    return true;
  }

  /// The variable that an expression names if it is a const one of the innermost braces.
  const clang::VarDecl* defined_here(const clang::Expr& expr) const {
    const clang::VarDecl* variable = variable_of(&expr);
    const bool here = variable != nullptr && variable->hasInit() &&
                      variable->getType().isConstQualified() &&
                      std::ranges::any_of(found_.definitions, [&](const auto* definition) {
                        return definition->getSingleDecl() == variable;
                      });
    return here ? variable : nullptr;
  }

  bool take_coordinates() {
    return take_summands(*found_.row.variable->getInit(), found_.row) &&
           take_summands(*found_.column.variable->getInit(), found_.column) &&
           !found_.row.rest.empty() && !found_.column.rest.empty();
  }

  bool take_summands(const clang::Expr& sum, TileCoordinate& coordinate) {
    const clang::Expr& bare = *sum.IgnoreParenImpCasts();
    const auto* operation = dyn_cast<clang::BinaryOperator>(&bare);
    if (operation != nullptr && operation->getOpcode() == clang::BO_Add) {
      return take_summands(*operation->getLHS(), coordinate) &&
             take_summands(*operation->getRHS(), coordinate);
    }
    const bool counts = std::ranges::any_of(
        found_.loops, [&](const CountedLoop& loop) { return mentions(bare, *loop.counter); });
    const bool uniform = !counts && Uniformity(kernel_).holds(bare);
    (uniform ? coordinate.origin : coordinate.rest).push_back(&bare);
    return true;
  }

  /// Whether the threads' iterations make up all elements of a tile, each once, and finds its
  /// extents.
  bool stores_tile_once() {
    std::vector<std::int64_t> rows;
    std::vector<std::int64_t> columns;
    if (!each_iteration(0, {}, rows, columns) || rows.empty() || std::ranges::min(rows) != 0 ||
        std::ranges::min(columns) != 0) {
      return false;
    }
    const std::int64_t width = group_width();
    found_.row.extent = std::ranges::max(rows) + 1;
    found_.column.extent = std::ranges::max(columns) + width;
    if (found_.row.extent * found_.column.extent !=
        static_cast<std::int64_t>(rows.size()) * width) {
      return false;
    }
    std::vector<bool> stored(found_.row.extent * found_.column.extent);
    for (std::size_t group = 0; group < rows.size(); ++group) {
      for (std::int64_t element = 0; element < width; ++element) {
        const auto place =
            static_cast<std::size_t>(rows[group] * found_.column.extent + columns[group] + element);
        if (stored[place]) {
          return false;
        }
        stored[place] = true;
      }
    }
    found_.row.written_extent = factor_of(found_.row);
    found_.column.written_extent = factor_of(found_.column);
    return found_.row.written_extent != nullptr && found_.column.written_extent != nullptr;
  }

  /// Elements that one iteration stores: those of its widest store, which all others are a part of.
  std::int64_t group_width() const {
    std::int64_t width = 0;
    for (const ResultStore& store : found_.stores) {
      width = std::max(width, store.offset + store.width);
    }
    return width;
  }

  bool each_iteration(std::size_t depth, Assignment values, std::vector<std::int64_t>& rows,
                      std::vector<std::int64_t>& columns) {
    if (depth == found_.loops.size()) {
      Evaluator evaluator(kernel_, values);
      return add_values(evaluator, found_.row, rows) &&
             add_values(evaluator, found_.column, columns);
    }
    const CountedLoop& loop = found_.loops[depth];
    const std::int64_t start = *constant_value(kernel_, *loop.start);
    for (std::int64_t trip = 0; trip < *trip_count(kernel_, loop); ++trip) {
      values[loop.counter] = start + trip * loop.step_value;
      if (!each_iteration(depth + 1, values, rows, columns)) {
        return false;
      }
    }
    return true;
  }

  bool add_values(Evaluator& evaluator, const TileCoordinate& coordinate,
                  std::vector<std::int64_t>& all) {
    std::vector<std::int64_t> sum(static_cast<std::size_t>(block_.threads));
    for (const clang::Expr* summand : coordinate.rest) {
      const auto values = thread_values(evaluator, block_, *summand);
      if (!values) {
        return false;
      }
      std::ranges::transform(sum, *values, sum.begin(), std::plus<>());
    }
    all.insert(all.end(), sum.begin(), sum.end());
    return true;
  }

  /// The constant factor of an origin that has the extent's value.
  const clang::Expr* factor_of(const TileCoordinate& coordinate) const {
    for (const clang::Expr* summand : coordinate.origin) {
      const auto* product = dyn_cast<clang::BinaryOperator>(&definition_of(*summand));
      for (const clang::Expr* side :
           product != nullptr && product->getOpcode() == clang::BO_Mul
               ? std::vector<const clang::Expr*>{product->getLHS(), product->getRHS()}
               : std::vector<const clang::Expr*>{}) {
        if (constant_value(kernel_, *side) == coordinate.extent) {
          return side->IgnoreParenImpCasts();
        }
      }
    }
    return nullptr;
  }

  const Kernel& kernel_;
  const ThreadBlock& block_;
  DirectEpilogue found_;
};

} // namespace

std::optional<DirectEpilogue> direct_epilogue(const Kernel& kernel, const Stages& stages,
                                              const ThreadBlock& block) {
  const auto& statements = stages.parent->body();
  const auto loop = std::ranges::find(statements, stages.statement);
  std::optional<DirectEpilogue> found;
  for (auto after = std::next(loop); after != statements.end(); ++after) {
    auto epilogue = EpilogueReader(kernel, block).read(*after);
    if (epilogue && found) {
      return std::nullopt;
    }
    if (epilogue) {
      found = std::move(epilogue);
    }
  }
  if (found) {
    found->accumulators = stages.accumulators;
  }
  return found;
}

} // namespace evo
