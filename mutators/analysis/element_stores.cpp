#include "mutators/analysis/element_stores.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/hinted_access.hpp"
#include "mutators/analysis/loop_nest.hpp"
#include "mutators/analysis/syntax_visitor.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

// ---- the index ----------------------------------------------------------------------------------

/// Without parentheses and casts to integers that hold every value of the operand.
const clang::Expr* plain(const Kernel& kernel, const clang::Expr* expr) {
  expr = expr->IgnoreParenImpCasts();
  const auto* cast = dyn_cast<clang::ExplicitCastExpr>(expr);
  const bool widens = cast != nullptr && cast->getType()->isIntegerType() &&
                      cast->getSubExpr()->getType()->isIntegerType() &&
                      kernel.ast().getTypeSize(cast->getType()) >=
                          kernel.ast().getTypeSize(cast->getSubExpr()->getType());
  return widens ? plain(kernel, cast->getSubExpr()) : expr;
}

const clang::VarDecl* variable_in(const clang::Expr* expr) {
  const auto* use = dyn_cast<clang::DeclRefExpr>(expr);
  return use == nullptr ? nullptr : dyn_cast<clang::VarDecl>(use->getDecl());
}

void collect_summands(const Kernel& kernel, const clang::Expr* sum,
                      std::vector<const clang::Expr*>& summands) {
  sum = plain(kernel, sum);
  const auto* binary = dyn_cast<clang::BinaryOperator>(sum);
  if (binary != nullptr && binary->getOpcode() == clang::BO_Add) {
    collect_summands(kernel, binary->getLHS(), summands);
    collect_summands(kernel, binary->getRHS(), summands);
  } else {
    summands.push_back(sum);
  }
}

const clang::ParmVarDecl* width_in(const clang::Expr* expr) {
  return clang::dyn_cast_or_null<clang::ParmVarDecl>(variable_in(expr));
}

/// {row, width} of row * width or width * row.
std::optional<ElementIndex> product(const Kernel& kernel, const clang::Expr* expr) {
  const auto* binary = dyn_cast<clang::BinaryOperator>(expr);
  if (binary == nullptr || binary->getOpcode() != clang::BO_Mul) {
    return std::nullopt;
  }
  const clang::Expr* left = plain(kernel, binary->getLHS());
  const clang::Expr* right = plain(kernel, binary->getRHS());
  if ((width_in(left) == nullptr) == (width_in(right) == nullptr)) {
    return std::nullopt;
  }
  return width_in(right) != nullptr ? ElementIndex{left, {}, width_in(right)}
                                    : ElementIndex{right, {}, width_in(left)};
}

// ---- where a store stands -----------------------------------------------------------------------

template <typename... Kinds> int count(const clang::Stmt& statement) {
  int found = isa<Kinds...>(statement) ? 1 : 0;
  for (const clang::Stmt* child : statement.children()) {
    found += child == nullptr ? 0 : count<Kinds...>(*child);
  }
  return found;
}

/// The condition of `if (condition) return;`.
const clang::Expr* early_return(const clang::Stmt* statement) {
  const auto* branch = dyn_cast<clang::IfStmt>(statement);
  if (branch == nullptr || branch->getElse() != nullptr || branch->getConditionVariable()) {
    return nullptr;
  }
  return isa<clang::ReturnStmt>(only_statement(branch->getThen())) ? branch->getCond() : nullptr;
}

/// Adds the statement around `inner` to what is known of the store; false where it cannot be
/// followed.
bool go_out(const Kernel& kernel, const clang::Stmt& around, const clang::Stmt& inner,
            ElementStore& store, int& returns) {
  if (const auto* braces = dyn_cast<clang::CompoundStmt>(&around)) {
    for (const clang::Stmt* before : braces->body()) {
      if (before == &inner) {
        break;
      }
      if (const clang::Expr* leaves = early_return(before)) {
        store.conditions.push_back({leaves, false});
        ++returns;
      }
    }
    return true;
  }
  if (const auto* branch = dyn_cast<clang::IfStmt>(&around)) {
    store.conditions.push_back({branch->getCond(), branch->getThen() == &inner});
    return !branch->getConditionVariable() && !branch->getInit() && branch->getCond() != &inner;
  }
  if (const auto* loop = dyn_cast<clang::ForStmt>(&around)) {
    const auto counted = counted_loop(kernel, *loop);
    if (!counted || loop->getBody() != &inner || returns != 0 ||
        count<clang::BreakStmt, clang::ContinueStmt>(*loop->getBody()) != 0) {
      return false;
    }
    store.loops.push_back(*counted);
    return true;
  }
  return isa<clang::AttributedStmt>(around);
}

bool locate(const Kernel& kernel, const clang::FunctionDecl& function, ElementStore& store) {
  int returns = 0;
  const clang::Stmt* inner = store.assignment;
  for (const clang::Stmt* around = parent_of(kernel, *inner); around != nullptr;
       inner = around, around = parent_of(kernel, *around)) {
    if (!go_out(kernel, *around, *inner, store, returns)) {
      return false;
    }
    store.around.push_back(around);
  }
  return inner == function.getBody() && count<clang::ReturnStmt>(*function.getBody()) == returns;
}

// ---- all accesses -------------------------------------------------------------------------------

class StoreCollector : public SyntaxVisitor {
public:
  StoreCollector(const Kernel& kernel, const clang::FunctionDecl& function,
                 const clang::ParmVarDecl& array)
      : kernel_(kernel), function_(function), array_(array) {}

  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
    if (use->getDecl() == &array_) {
      followed = followed && follow(*use);
    }
    return true;
  }

  ElementAccesses accesses;
  bool followed = true;

private:
  /// A use of the array must be the base of array[index], read or assigned to.
  bool follow(const clang::DeclRefExpr& use) {
    const clang::Stmt* around = &use;
    do {
      around = parent_of(kernel_, *around);
    } while (isa<clang::ImplicitCastExpr, clang::ParenExpr>(around));
    const auto* element = dyn_cast<clang::ArraySubscriptExpr>(around);
    const auto index = element != nullptr && element->getBase()->IgnoreParenImpCasts() == &use
                           ? element_index(kernel_, *element->getIdx())
                           : std::nullopt;
    return index && (add_read(*element, *index) || add_store(*element, *index));
  }

  bool add_read(const clang::ArraySubscriptExpr& element, const ElementIndex& index) {
    const auto* cast = dyn_cast<clang::ImplicitCastExpr>(parent_of(kernel_, element));
    const bool loads = cast != nullptr && cast->getCastKind() == clang::CK_LValueToRValue;
    if (!loads && !loads_with_hint(element)) {
      return false;
    }
    accesses.reads.push_back({&element, index});
    return true;
  }

  /// __ldg(&element).
  bool loads_with_hint(const clang::ArraySubscriptExpr& element) const {
    const clang::Stmt* around = parent_of(kernel_, element);
    while (around != nullptr &&
           isa<clang::UnaryOperator, clang::ImplicitCastExpr, clang::ParenExpr>(around)) {
      around = parent_of(kernel_, *around);
    }
    const auto* call = clang::dyn_cast_or_null<clang::CallExpr>(around);
    const auto load = call == nullptr ? std::nullopt : hinted_load(call);
    return load && load->place == &element;
  }

  bool add_store(const clang::ArraySubscriptExpr& element, const ElementIndex& index) {
    const auto* assignment = dyn_cast<clang::BinaryOperator>(parent_of(kernel_, element));
    if (assignment == nullptr || !assignment->isAssignmentOp() ||
        assignment->getLHS() != &element) {
      return false;
    }
    ElementStore store{.assignment = assignment,
                       .element = &element,
                       .index = index,
                       .around = {},
                       .loops = {},
                       .conditions = {}};
    const bool located = locate(kernel_, function_, store);
    accesses.stores.push_back(std::move(store));
    return located;
  }

  const Kernel& kernel_;
  const clang::FunctionDecl& function_;
  const clang::ParmVarDecl& array_;
};

// ---- the elements of a launch -------------------------------------------------------------------

std::optional<std::int64_t> known(const std::variant<std::int64_t, Failure>& value) {
  const auto* number = std::get_if<std::int64_t>(&value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

/// Which of blockIdx.x, y and z an expression may depend on.
class BlockDependence : public SyntaxVisitor {
public:
  bool TraverseMemberExpr(clang::MemberExpr* member) override {
    const clang::VarDecl* object = variable_in(member->getBase()->IgnoreParenImpCasts());
    if (object == nullptr || object->getNameAsString() != "blockIdx") {
      return SyntaxVisitor::TraverseMemberExpr(member);
    }
    const std::string axis = member->getMemberDecl()->getNameAsString();
    x = x || axis == "x";
    y = y || axis == "y";
    z = z || axis == "z";
    return true;
  }
  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
    const auto* variable = dyn_cast<clang::VarDecl>(use->getDecl());
    if (variable != nullptr && variable->isLocalVarDecl() && variable->hasInit()) {
      TraverseStmt(const_cast<clang::Expr*>(variable->getInit()));
    }
    if (isa<clang::FunctionDecl>(use->getDecl())) {
      x = y = z = true; // not looked into
    }
    return true;
  }

  bool x = false;
  bool y = false;
  bool z = false;
};

/// The values of expressions in the blocks of a launch, evaluated again only where the part of
/// blockIdx that they depend on changes.
class BlockValues {
public:
  BlockValues(const Kernel& kernel, const Assignment& values, Block block)
      : evaluator_(kernel, values), block_(std::move(block)) {}

  /// nullptr if the expression cannot be evaluated.
  const Ints* value(const clang::Expr& expression, Extent3 index) {
    auto [dependence, is_new] = dependences_.try_emplace(&expression);
    if (is_new) {
      dependence->second.TraverseStmt(const_cast<clang::Expr*>(&expression));
    }
    index = {dependence->second.x ? index.x : 0, dependence->second.y ? index.y : 0,
             dependence->second.z ? index.z : 0};
    const auto key = std::tuple(&expression, index.x, index.y, index.z);
    if (!known_.contains(key)) {
      block_.index = index;
      auto result = evaluator_.value(expression, block_);
      auto* lanes = std::get_if<Ints>(&result);
      known_[key] = lanes == nullptr ? std::nullopt : std::optional(std::move(*lanes));
    }
    const std::optional<Ints>& found = known_[key];
    return found ? &*found : nullptr;
  }

private:
  Evaluator evaluator_;
  Block block_;
  std::map<const clang::Expr*, BlockDependence> dependences_;
  std::map<std::tuple<const clang::Expr*, int, int, int>, std::optional<Ints>> known_;
};

class Enumerator {
public:
  Enumerator(const Kernel& kernel, const EvaluatedLaunch& launch)
      : kernel_(kernel), block_(launch.block_at({})) {
    const clang::FunctionDecl& function = *launch.launch.kernel;
    for (unsigned i = 0; i < function.getNumParams(); ++i) {
      const auto* value = std::get_if<std::int64_t>(&launch.arguments[i]);
      if (value != nullptr && !may_change(*function.getBody(), *function.getParamDecl(i))) {
        values_[function.getParamDecl(i)] = *value;
      }
    }
    block_.arguments.clear(); // those that change are unknown
  }

  bool add(const ElementStore& store) { return iterate(store, store.loops.size()); }

  ElementSet set;

private:
  /// Runs the outermost `depth` - 1 loops that are left, then the store.
  bool iterate(const ElementStore& store, std::size_t depth) {
    if (depth == 0) {
      return store_everywhere(store);
    }
    const CountedLoop& loop = store.loops[depth - 1];
    Evaluator evaluator(kernel_, values_);
    const auto start = known(evaluator.value(*loop.start));
    const auto limit = known(evaluator.value(*loop.limit));
    if (!start || !limit) {
      return false;
    }
    for (std::int64_t i = *start; i < *limit; i += loop.step_value) {
      values_[loop.counter] = i;
      if (!iterate(store, depth - 1)) {
        return false;
      }
    }
    return true;
  }

  bool store_everywhere(const ElementStore& store) {
    BlockValues values(kernel_, values_, block_);
    for (int z = 0; z < block_.grid.z; ++z) {
      for (int y = 0; y < block_.grid.y; ++y) {
        for (int x = 0; x < block_.grid.x; ++x) {
          if (!store_in_block(store, {x, y, z}, values)) {
            return false;
          }
        }
      }
    }
    return true;
  }

  bool store_in_block(const ElementStore& store, Extent3 index, BlockValues& values) {
    const auto lanes = static_cast<std::size_t>(block_.block.count());
    Mask active(lanes);
    for (const Condition& condition : store.conditions) {
      const Ints* holds = values.value(*condition.expression, index);
      for (std::size_t lane = 0; holds != nullptr && lane < lanes; ++lane) {
        active.set(lane, active[lane] && ((*holds)[lane] != 0) == condition.holds);
      }
      if (holds == nullptr) {
        return false;
      }
    }
    const Ints* row = values.value(*store.index.row, index);
    Ints column = 0;
    for (const clang::Expr* summand : store.index.column) {
      const Ints* part = values.value(*summand, index);
      if (part == nullptr) {
        return false;
      }
      column = combine(column, *part, std::plus<std::int64_t>());
    }
    for (std::size_t lane = 0; row != nullptr && lane < lanes; ++lane) {
      if (active[lane]) {
        set.elements.push_back({(*row)[lane], column[lane]});
      }
    }
    const auto width = values_.find(store.index.width);
    set.width = width == values_.end() ? 0 : width->second;
    return row != nullptr && set.width > 0;
  }

  const Kernel& kernel_;
  Assignment values_;
  Block block_;
};

} // namespace

std::optional<ElementIndex> element_index(const Kernel& kernel, const clang::Expr& index) {
  const clang::Expr* expr = plain(kernel, &index);
  const clang::VarDecl* named = variable_in(expr);
  if (named != nullptr && named->getType().isConstQualified() && named->hasInit()) {
    return element_index(kernel, *named->getInit()); // const int e = row * d + col; Y[e]
  }
  std::vector<const clang::Expr*> summands;
  collect_summands(kernel, expr, summands);
  std::optional<ElementIndex> result;
  std::vector<const clang::Expr*> column;
  for (const clang::Expr* summand : summands) {
    const auto found = product(kernel, summand);
    if (found && result) {
      return std::nullopt;
    }
    if (found) {
      result = found;
    } else {
      column.push_back(summand);
    }
  }
  if (!result || column.empty()) {
    return std::nullopt;
  }
  result->column = std::move(column);
  return result;
}

bool same_index(const Kernel& kernel, const ElementIndex& a, const ElementIndex& b) {
  return a.width == b.width && same_expression(kernel, a.row, b.row) &&
         std::ranges::equal(a.column, b.column, [&](const clang::Expr* x, const clang::Expr* y) {
           return same_expression(kernel, x, y);
         });
}

std::optional<ElementAccesses> element_accesses(const Kernel& kernel,
                                                const clang::FunctionDecl& function,
                                                const clang::ParmVarDecl& array) {
  StoreCollector collector(kernel, function, array);
  collector.TraverseStmt(function.getBody());
  return collector.followed ? std::optional(std::move(collector.accesses)) : std::nullopt;
}

std::optional<ElementSet> stored_elements(const Kernel& kernel, const EvaluatedLaunch& launch,
                                          const std::vector<ElementStore>& stores) {
  Enumerator enumerator(kernel, launch);
  for (const ElementStore& store : stores) {
    if (!enumerator.add(store)) {
      return std::nullopt;
    }
  }
  std::ranges::sort(enumerator.set.elements);
  return std::move(enumerator.set);
}

} // namespace evo
