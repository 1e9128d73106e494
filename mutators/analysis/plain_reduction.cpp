#include "mutators/analysis/plain_reduction.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

// ---- the loop -----------------------------------------------------------------------------------

const clang::Stmt* without_pragmas(const clang::Stmt* statement) {
  const auto* attributed = dyn_cast<clang::AttributedStmt>(statement);
  return attributed == nullptr ? statement : attributed->getSubStmt();
}

bool is_zero(const clang::Expr& expr) {
  const clang::Expr* bare = expr.IgnoreParenImpCasts();
  if (const auto* number = dyn_cast<clang::FloatingLiteral>(bare)) {
    return number->getValue().isPosZero();
  }
  const auto* number = dyn_cast<clang::IntegerLiteral>(bare);
  return number != nullptr && number->getValue() == 0;
}

/// The one assignment in a body that otherwise defines variables; nullptr for any other body.
const clang::BinaryOperator* only_assignment(const clang::Stmt& body) {
  const clang::BinaryOperator* found = nullptr;
  const auto* braces = dyn_cast<clang::CompoundStmt>(&body);
  const auto add = [&](const clang::Stmt* statement) {
    const auto* expr = dyn_cast<clang::Expr>(statement);
    const auto* assignment =
        expr == nullptr ? nullptr : dyn_cast<clang::BinaryOperator>(expr->IgnoreImplicit());
    const bool first = found == nullptr && assignment != nullptr && assignment->isAssignmentOp();
    found = first ? assignment : found;
    return first || isa<clang::DeclStmt>(statement);
  };
  const bool plain = braces == nullptr ? add(&body) : std::ranges::all_of(braces->body(), add);
  return plain ? found : nullptr;
}

/// Splits the statements at the first loop; false where anything but definitions stands before it,
/// or it is no sum.
bool split_at_loop(const Kernel& kernel, PlainReduction& reduction) {
  const auto& statements = reduction.code.statements;
  const auto at = std::ranges::find_if(
      statements, [](const clang::Stmt* statement) { return !isa<clang::DeclStmt>(statement); });
  const auto loops = device_loops(kernel);
  const auto loop = std::ranges::find_if(loops, [&](const DeviceLoop& candidate) {
    return at != statements.end() && candidate.counted.loop == without_pragmas(*at);
  });
  if (loop == loops.end() || loop->counted.step_value != 1) {
    return false;
  }
  reduction.loop = *loop;
  const auto* update = only_assignment(*loop->counted.loop->getBody());
  reduction.update = update;
  reduction.sum = update == nullptr ? nullptr : variable_of(update->getLHS());
  reduction.definitions.assign(statements.begin(), at);
  reduction.epilogue.assign(at + 1, statements.end());
  return reduction.sum != nullptr;
}

/// Takes the definition of the sum away from the others.
bool take_sum(const Kernel& kernel, PlainReduction& reduction) {
  const clang::VarDecl& sum = *reduction.sum;
  const auto taken = std::erase_if(reduction.definitions, [&](const clang::Stmt* statement) {
    const auto* definition = dyn_cast<clang::DeclStmt>(statement);
    return definition->isSingleDecl() && definition->getSingleDecl() == &sum;
  });
  return taken == 1 && sum.hasInit() && is_zero(*sum.getInit()) &&
         kernel.ast().hasSameUnqualifiedType(sum.getType(), kernel.ast().FloatTy) &&
         std::ranges::none_of(reduction.definitions, [&](const clang::Stmt* statement) {
           return mentions(*statement, sum);
         });
}

/// Drops the definitions that only the loop needs.
void drop_definitions(const Kernel& kernel, PlainReduction& reduction) {
  const ElementwiseUpdate& code = reduction.code;
  std::set<const clang::ValueDecl*> needed;
  const UpdateVisitor note{
      .use = [&](const clang::DeclRefExpr& use) { needed.insert(use.getDecl()); }};
  for (const clang::Stmt* statement : reduction.epilogue) {
    visit(kernel, code, *statement, note);
  }
  visit(kernel, code, *code.store.assignment->getRHS(), note);
  for (const Condition& condition : reduction.conditions) {
    visit(kernel, code, *condition.expression, note);
  }
  std::vector<const clang::Stmt*> kept;
  for (std::size_t i = reduction.definitions.size(); i-- > 0;) { // uses stand behind definitions
    const auto* definition = dyn_cast<clang::DeclStmt>(reduction.definitions[i]);
    if (std::ranges::any_of(definition->decls(), [&](clang::Decl* decl) {
          return needed.contains(dyn_cast<clang::ValueDecl>(decl));
        })) {
      kept.insert(kept.begin(), definition);
      visit(kernel, code, *definition, note);
    }
  }
  reduction.definitions = std::move(kept);
}

// ---- the operands -------------------------------------------------------------------------------

/// The first element of a parameter's array in an expression, in the variables that it names too.
const clang::ArraySubscriptExpr* first_element(const clang::Stmt& code) {
  const auto* element = dyn_cast<clang::ArraySubscriptExpr>(&code);
  if (element != nullptr &&
      clang::dyn_cast_or_null<clang::ParmVarDecl>(variable_of(element->getBase())) != nullptr) {
    return element;
  }
  const auto* use = dyn_cast<clang::DeclRefExpr>(&code);
  const auto* variable = use == nullptr ? nullptr : dyn_cast<clang::VarDecl>(use->getDecl());
  if (variable != nullptr && variable->isLocalVarDecl() && variable->hasInit()) {
    return first_element(*variable->getInit());
  }
  for (const clang::Stmt* child : code.children()) {
    const auto* found = child == nullptr ? nullptr : first_element(*child);
    if (found != nullptr) {
      return found;
    }
  }
  return nullptr;
}

/// Finds the largest parts of the update that do not depend on both coordinates.
class OperandFinder {
public:
  OperandFinder(const Kernel& kernel, PlainReduction& reduction)
      : kernel_(kernel), reduction_(reduction) {}

  /// False unless there is one operand for the rows and one for the columns, and nothing else that
  /// differs between terms.
  bool find() {
    const auto* update = clang::cast<clang::BinaryOperator>(reduction_.update);
    return descend(*update->getRHS()) && reduction_.of_row.value != nullptr &&
           reduction_.of_column.value != nullptr;
  }

private:
  bool descend(const clang::Expr& expr) {
    const Dependences found = dependences(kernel_, reduction_, expr);
    if (found.row != found.column) {
      return found.counter &&
             set(found.row ? reduction_.of_row : reduction_.of_column, expr, found.row);
    }
    if (!found.row) {
      return !found.counter;
    }
    return !isa<clang::DeclRefExpr, clang::ArraySubscriptExpr>(expr) &&
           std::ranges::all_of(expr.children(), [&](const clang::Stmt* child) {
             return isa<clang::Expr>(child) && descend(*clang::cast<clang::Expr>(child));
           });
  }

  bool set(ReductionOperand& operand, const clang::Expr& expr, bool is_row) {
    const clang::Expr* value = expr.IgnoreImplicit();
    const auto* element = first_element(*value);
    if (operand.value != nullptr || element == nullptr ||
        !kernel_.ast().hasSameUnqualifiedType(value->getType(), kernel_.ast().FloatTy)) {
      return false;
    }
    const clang::Expr& index = *element->getIdx();
    const bool by_counter = has_summand(index, [&](const clang::Expr& summand) {
      return variable_of(&summand) == reduction_.loop.counted.counter;
    });
    const bool by_coordinate =
        has_summand(index, [&](const clang::Expr& summand) { return is_coordinate(summand); });
    operand = {value, dyn_cast<clang::ParmVarDecl>(variable_of(element->getBase())),
               by_counter != by_coordinate ? by_counter : is_row};
    return true;
  }

  bool is_coordinate(const clang::Expr& expr) const {
    bool found = false;
    visit(kernel_, reduction_.code, expr,
          {.part = [&](const clang::Expr& part, Part) { found = found || &part == &expr; }});
    return found;
  }

  /// Whether a sum, written out, has such a summand: then it steps by one with it.
  template <class Predicate>
  static bool has_summand(const clang::Expr& sum, const Predicate& predicate) {
    if (predicate(*sum.IgnoreParenImpCasts())) {
      return true;
    }
    const clang::Expr& written = definition_of(sum);
    const auto* binary = dyn_cast<clang::BinaryOperator>(&written);
    return binary != nullptr && binary->getOpcode() == clang::BO_Add &&
           (has_summand(*binary->getLHS(), predicate) || has_summand(*binary->getRHS(), predicate));
  }

  const Kernel& kernel_;
  PlainReduction& reduction_;
};

// ---- the extents --------------------------------------------------------------------------------

/// Sizes for the evaluation: one element, less than a block, and a little more than one of the
/// usual 256 threads.
constexpr std::array<std::int64_t, 3> product_sizes{1, 67, 259};

/// A condition of the store with its coordinates called "row" and "column": "row<d".
std::optional<std::string> bound(const Kernel& kernel, const PlainReduction& reduction,
                                 const Condition& condition) {
  std::vector<Edit> edits;
  visit(kernel, reduction.code, *condition.expression,
        {.part = [&](const clang::Expr& expr, Part part) {
          if (const auto span = span_of(kernel, expr.getSourceRange())) {
            edits.push_back({span->begin, span->length(), part == Part::Row ? "row" : "column"});
          }
        }});
  return normal_form(kernel, condition, edits);
}

/// What may say how many rows or columns there are, with its value at each of the sizes.
struct SizeSource {
  std::string in_kernel;
  std::string in_entry;
  std::vector<std::int64_t> values;
};

class ConstantUses : public SyntaxVisitor {
public:
  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
    const auto* variable = dyn_cast<clang::VarDecl>(use->getDecl());
    if (variable != nullptr && variable->isConstexpr() && variable->isFileVarDecl()) {
      found.push_back(use);
    }
    return true;
  }

  std::vector<const clang::Expr*> found;
};

class ExtentFinder {
public:
  ExtentFinder(const Kernel& kernel, PlainReduction& reduction)
      : kernel_(kernel), reduction_(reduction) {}

  bool find() {
    return evaluate() && name("row", rows_, reduction_.rows) &&
           name("column", columns_, reduction_.columns);
  }

private:
  /// The matrix at each size; false where the threads do not store a full one.
  bool evaluate() {
    const auto dims = find_dims(kernel_);
    const auto accesses =
        element_accesses(kernel_, *reduction_.code.kernel, *reduction_.code.array);
    for (const std::int64_t size : product_sizes) {
      const auto launches =
          dims ? launches_at(kernel_, *dims, size) : std::vector<EvaluatedLaunch>{};
      const auto launch =
          std::ranges::find(launches, reduction_.launch.call,
                            [](const EvaluatedLaunch& candidate) { return candidate.launch.call; });
      const auto stored = launch == launches.end()
                              ? std::nullopt
                              : stored_elements(kernel_, *launch, accesses->stores);
      if (!stored || !add_full(*stored) || launch->shared_bytes != 0) {
        return false;
      }
      launches_.push_back(*launch);
    }
    return true;
  }

  bool add_full(const ElementSet& set) {
    if (set.elements.empty() || std::ranges::adjacent_find(set.elements) != set.elements.end()) {
      return false;
    }
    const auto rows = set.elements.back().row + 1;
    const auto columns = std::ranges::max(set.elements, {}, &Element::column).column + 1;
    rows_.push_back(rows);
    columns_.push_back(columns);
    return columns <= set.width && rows * columns == std::ssize(set.elements) &&
           std::ranges::all_of(set.elements, [](const Element& element) {
             return element.row >= 0 && element.column >= 0;
           });
  }

  /// What a condition of the store says; else the first candidate, else the number itself.
  bool name(const std::string& coordinate, const std::vector<std::int64_t>& values,
            MatrixExtent& extent) const {
    std::set<std::string> bounds;
    for (const Condition& condition : reduction_.code.store.conditions) {
      bounds.insert(bound(kernel_, reduction_, condition).value_or(""));
    }
    for (const SizeSource& candidate : candidates()) {
      const bool said = bounds.contains(coordinate + "<" + candidate.in_kernel);
      if (candidate.values == values && (said || extent.in_kernel.empty())) {
        extent = {candidate.in_kernel, candidate.in_entry, {}};
      }
    }
    if (std::ranges::count(values, values.front()) == std::ssize(values)) {
      extent.constant = values.front();
      const std::string number = std::to_string(values.front());
      extent.in_kernel = extent.in_kernel.empty() ? number : extent.in_kernel;
      extent.in_entry = extent.in_entry.empty() ? number : extent.in_entry;
    }
    return !extent.in_kernel.empty();
  }

  /// The kernel's parameters and the constants that the grid is made of.
  std::vector<SizeSource> candidates() const {
    std::vector<SizeSource> result;
    const clang::FunctionDecl& function = *reduction_.code.kernel;
    for (unsigned i = 0; i < function.getNumParams(); ++i) {
      SizeSource candidate{
          function.getParamDecl(i)->getNameAsString(), text(*reduction_.launch.arguments[i]), {}};
      for (const EvaluatedLaunch& launch : launches_) {
        if (const auto* value = std::get_if<std::int64_t>(&launch.arguments[i])) {
          candidate.values.push_back(*value);
        }
      }
      result.push_back(std::move(candidate));
    }
    ConstantUses constants;
    constants.TraverseStmt(const_cast<clang::Expr*>(reduction_.launch.grid));
    for (const clang::Expr* constant : constants.found) {
      const auto value = constant_value(kernel_, *constant);
      result.push_back({text(*constant), text(*constant),
                        std::vector<std::int64_t>(product_sizes.size(), value.value_or(0))});
    }
    std::erase_if(result, [](const SizeSource& candidate) { return candidate.in_entry.empty(); });
    return result;
  }

  /// Empty inside a macro.
  std::string text(const clang::Expr& expr) const {
    const auto span = span_of(kernel_, expr.getSourceRange());
    return span ? render(kernel_, *span) : "";
  }

  const Kernel& kernel_;
  PlainReduction& reduction_;
  std::vector<EvaluatedLaunch> launches_;
  std::vector<std::int64_t> rows_;
  std::vector<std::int64_t> columns_;
};

/// Keeps the conditions that say more than where the matrix ends.
void keep_conditions(const Kernel& kernel, PlainReduction& reduction) {
  reduction.conditions = reduction.code.store.conditions;
  std::erase_if(reduction.conditions, [&](const Condition& condition) {
    const auto form = bound(kernel, reduction, condition);
    return form == "row<" + reduction.rows.in_kernel ||
           form == "column<" + reduction.columns.in_kernel;
  });
}

std::optional<PlainReduction> as_plain_reduction(const Kernel& kernel, const Launch& launch,
                                                 const clang::ParmVarDecl& array) {
  auto code = elementwise_store(kernel, *launch.kernel, array);
  if (!code) {
    return std::nullopt;
  }
  PlainReduction reduction;
  reduction.launch = launch;
  reduction.code = std::move(*code);
  if (!split_at_loop(kernel, reduction) || !take_sum(kernel, reduction) ||
      !OperandFinder(kernel, reduction).find() || !ExtentFinder(kernel, reduction).find()) {
    return std::nullopt;
  }
  keep_conditions(kernel, reduction);
  drop_definitions(kernel, reduction);
  return reduction;
}

} // namespace

Dependences dependences(const Kernel& kernel, const PlainReduction& reduction,
                        const clang::Stmt& code) {
  Dependences result;
  std::set<const clang::ValueDecl*> seen;
  const std::function<void(const clang::Stmt&)> look = [&](const clang::Stmt& part) {
    visit(kernel, reduction.code, part,
          {.part =
               [&](const clang::Expr&, Part found) {
                 result.row = result.row || found != Part::Column;
                 result.column = result.column || found != Part::Row;
               },
           .use =
               [&](const clang::DeclRefExpr& use) {
                 const auto* variable = dyn_cast<clang::VarDecl>(use.getDecl());
                 if (variable == reduction.loop.counted.counter) {
                   result.counter = true;
                 } else if (variable != nullptr && variable->isLocalVarDecl() &&
                            variable->hasInit() && seen.insert(variable).second) {
                   look(*variable->getInit());
                 }
               }});
  };
  look(code);
  return result;
}

std::vector<PlainReduction> find_plain_reductions(const Kernel& kernel) {
  std::vector<PlainReduction> found;
  for (const Launch& launch : find_launches(kernel)) {
    const clang::FunctionDecl& function = *launch.kernel;
    if (function.getTemplatedKind() != clang::FunctionDecl::TK_NonTemplate ||
        !is_used_once(kernel, function)) {
      continue;
    }
    for (const clang::ParmVarDecl* parameter : function.parameters()) {
      const clang::QualType pointee = parameter->getType()->getPointeeType();
      auto reduction = pointee.isNull() || pointee.isConstQualified()
                           ? std::nullopt
                           : as_plain_reduction(kernel, launch, *parameter);
      if (reduction) {
        found.push_back(std::move(*reduction));
        break;
      }
    }
  }
  return found;
}

} // namespace evo
