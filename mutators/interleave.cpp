#include "mutators/interleave.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ParentMapContext.h>
#include <clang/AST/RecursiveASTVisitor.h>

#include "mutators/analysis/constants.hpp"
#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/counter_values.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/constant_placement.hpp"
#include "mutators/names.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

using Values = CounterValues::Values;

constexpr std::array<std::int64_t, 3> group_sizes{4, 2, 1};

/// const int thread_col = threadIdx.x % threads_n * thread_n: where a thread's part of a tile's
/// rows or columns begins.
struct Coordinate {
  const clang::VarDecl* variable = nullptr;
  const clang::Expr* factor = nullptr; // its elements side by side
  std::int64_t group = 0;              // the factor's value
  std::int64_t positions = 0;
  std::string written_positions; // a product or quotient of constants
};

/// A sum of the coordinate, an element's number and whatever else.
struct Site {
  const clang::Expr* element = nullptr; // its number, or what that leaves in its group
  Values values;                        // of it
  std::vector<const clang::Expr*> summands;
};

/// The number of an element that a sum takes in groups: number / group * stride + number % group.
struct Grouped {
  const clang::Expr* number = nullptr;
  const clang::Expr* stride = nullptr;
};

class Uses : public clang::RecursiveASTVisitor<Uses> {
public:
  explicit Uses(const clang::VarDecl& variable) : variable_(variable) {}

  bool VisitDeclRefExpr(clang::DeclRefExpr* reference) {
    if (reference->getDecl() == &variable_) {
      found.push_back(reference);
    }
    return true;
  }

  std::vector<const clang::Expr*> found;

private:
  const clang::VarDecl& variable_;
};

/// The whole sum that a summand stands in.
const clang::Expr& sum_around(const Kernel& kernel, const clang::Expr& summand) {
  const clang::Expr* sum = &summand;
  while (const auto* parent = clang::dyn_cast_or_null<clang::Expr>(parent_of(kernel, *sum))) {
    const auto* operation = dyn_cast<clang::BinaryOperator>(parent);
    const bool adds = operation != nullptr && operation->getOpcode() == clang::BO_Add;
    const bool takes_from = operation != nullptr && operation->getOpcode() == clang::BO_Sub &&
                            operation->getLHS() == sum;
    if (!adds && !takes_from && !clang::isa<clang::ParenExpr, clang::ImplicitCastExpr>(parent)) {
      break;
    }
    sum = parent;
  }
  return *sum;
}

void add_summands(const clang::Expr& sum, std::vector<const clang::Expr*>& summands) {
  const clang::Expr& inner = *sum.IgnoreParenImpCasts();
  const auto* operation = dyn_cast<clang::BinaryOperator>(&inner);
  if (operation != nullptr && operation->getOpcode() == clang::BO_Add) {
    add_summands(*operation->getLHS(), summands);
    add_summands(*operation->getRHS(), summands);
  } else if (operation != nullptr && operation->getOpcode() == clang::BO_Sub) {
    add_summands(*operation->getLHS(), summands);
  } else {
    summands.push_back(&inner);
  }
}

/// The const integer that an expression defines.
const clang::VarDecl* defined_by(const Kernel& kernel, const clang::Expr& initialiser) {
  const auto parents = kernel.ast().getParents(initialiser);
  const auto* variable = parents.empty() ? nullptr : parents[0].get<clang::VarDecl>();
  return variable != nullptr && variable->getType().isConstQualified() &&
                 variable->getType()->isIntegerType()
             ? variable
             : nullptr;
}

/// One coordinate's rewrites.
class Interleaving {
public:
  Interleaving(const Kernel& kernel, const ThreadBlock& block, const CounterValues& values,
               const Coordinate& coordinate, ThreadExchange& exchange)
      : kernel_(kernel), block_(block), values_(values), coordinate_(coordinate),
        exchange_(exchange) {}

  std::vector<Rewrite> rewrites() {
    if (!add_sites(*coordinate_.variable) || sites_.empty()) {
      return {};
    }
    return std::ranges::all_of(sites_,
                               [&](const Site& site) { return as_grouped(site).has_value(); })
               ? regrouped()
               : grouped();
  }

private:
  std::string label(std::int64_t group) const {
    return block_.function->getNameAsString() + "/" + coordinate_.variable->getNameAsString() +
           " groups " + std::to_string(group);
  }

  /// The sums that a variable which holds the coordinate stands in. One that has no element yet is
  /// followed to the variable that it defines.
  bool add_sites(const clang::VarDecl& holder) {
    Uses uses(holder);
    uses.TraverseStmt(block_.function->getBody());
    return std::ranges::all_of(uses.found, [&](const clang::Expr* use) {
      const clang::Expr& sum = sum_around(kernel_, *use);
      const auto elements = elements_of(sum);
      if (elements.empty()) {
        const clang::VarDecl* next = defined_by(kernel_, sum);
        return next != nullptr && add_sites(*next);
      }
      sites_.push_back(elements.front());
      return elements.size() == 1;
    });
  }

  std::vector<Site> elements_of(const clang::Expr& sum) const {
    std::vector<const clang::Expr*> summands;
    add_summands(sum, summands);
    std::vector<Site> elements;
    for (const clang::Expr* summand : summands) {
      const auto values = values_.of(*summand);
      if (values && *values->begin() >= 0 && *values->rbegin() < coordinate_.group) {
        elements.push_back({summand, *values, summands});
      }
    }
    return elements;
  }

  /// The least group that no wide access crosses: wherever an element's number goes in steps, what
  /// lies between two of them is taken together.
  static std::int64_t widest_step(const std::vector<Values>& numbers, std::int64_t whole) {
    std::int64_t result = 1;
    for (const Values& values : numbers) {
      result = std::max(result, std::accumulate(values.begin(), values.end(), whole,
                                                [](auto a, auto b) { return std::gcd(a, b); }));
    }
    return result;
  }

  // In groups for the first time

  std::vector<Rewrite> grouped() {
    std::vector<Values> numbers;
    std::ranges::transform(sites_, std::back_inserter(numbers), &Site::values);
    const std::int64_t together = widest_step(numbers, coordinate_.group);
    std::vector<Rewrite> result;
    for (const std::int64_t group : group_sizes) {
      if (group < coordinate_.group && coordinate_.group % group == 0 && group % together == 0) {
        if (auto edits = grouped(group)) {
          result.push_back({label(group), std::move(*edits)});
        }
      }
    }
    return !result.empty() && may_exchange(together, coordinate_.group) ? result
                                                                        : std::vector<Rewrite>{};
  }

  std::optional<std::vector<Edit>> grouped(std::int64_t group) const {
    const std::string name =
        Names(kernel_).fresh(block_.function->getNameAsString() + "_" +
                             coordinate_.variable->getNameAsString() + "_group");
    const auto whole = operand(kernel_, *coordinate_.factor, Binding::Product);
    const auto factor = span_of(kernel_, coordinate_.factor->getSourceRange());
    const auto place =
        offset_behind(kernel_, mentioned_constants(*coordinate_.factor), *block_.function);
    auto edits = with_elements([&](const Site&, const std::string& element) {
      return element + " / " + name + " * (" + coordinate_.written_positions + " * " + name +
             ") + " + element + " % " + name;
    });
    if (!whole || !factor || !place || !edits) {
      return std::nullopt;
    }
    edits->push_back({factor->begin, factor->length(), name});
    edits->push_back({*place, 0,
                      "constexpr int " + name + " = " + std::to_string(group) + ";\n" + //
                          "static_assert(" + *whole + " % " + name + " == 0);\n"});
    sort_edits(*edits);
    return edits;
  }

  /// With `map` applied to every element's number; nullopt in a macro, and where two sums share
  /// one.
  template <class Map> std::optional<std::vector<Edit>> with_elements(const Map& map) const {
    std::vector<Edit> edits;
    for (const Site& site : sites_) {
      const auto span = span_of(kernel_, site.element->getSourceRange());
      const auto element = operand(kernel_, *site.element, Binding::Product);
      const bool again = span && std::ranges::any_of(edits, [&](const Edit& edit) {
                           return edit.offset == span->begin;
                         });
      if (!span || !element || again) {
        return std::nullopt;
      }
      edits.push_back({span->begin, span->length(), map(site, *element)});
    }
    sort_edits(edits);
    return edits;
  }

  /// Moves groups of `together` elements on in the tile, in which a thread has `whole` elements.
  bool may_exchange(std::int64_t together, std::int64_t whole) {
    const std::string size = std::to_string(together);
    const auto edits = with_elements([&](const Site& site, const std::string& element) {
      const auto grouped = as_grouped(site);
      const std::string begin =
          coordinate_.variable->getNameAsString() +
          (grouped ? " + " + text(*grouped->number) + " / " + text(*coordinate_.factor) + " * " +
                         text(*grouped->stride)
                   : "");
      const std::string place = "(" + begin + " + " + element + ")";
      return "(" +
             ThreadExchange::moved_on(place + " / " + size,
                                      coordinate_.positions * whole / together) +
             " * " + size + " + " + place + " % " + size + " - (" + begin + "))";
    });
    return edits && exchange_.keeps_outputs(*edits);
  }

  /// In parentheses where it needs them in a product; empty in a macro.
  std::string text(const clang::Expr& expr) const {
    return operand(kernel_, expr, Binding::Operand).value_or("");
  }

  // In groups of another size

  std::optional<Grouped> as_grouped(const Site& site) const {
    const clang::Expr* number = over_group(*site.element, clang::BO_Rem);
    if (number == nullptr) {
      return std::nullopt;
    }
    for (const clang::Expr* summand : site.summands) {
      const auto* product = dyn_cast<clang::BinaryOperator>(summand);
      const bool scales = product != nullptr && product->getOpcode() == clang::BO_Mul;
      const clang::Expr* divided = scales ? over_group(*product->getLHS(), clang::BO_Div) : nullptr;
      if (divided != nullptr && same_expression(kernel_, divided, number)) {
        return Grouped{number, product->getRHS()};
      }
    }
    return std::nullopt;
  }

  /// What an expression divides by the group, or takes the remainder of.
  const clang::Expr* over_group(const clang::Expr& expr, int opcode) const {
    const auto* operation = dyn_cast<clang::BinaryOperator>(expr.IgnoreParenImpCasts());
    return operation != nullptr && operation->getOpcode() == opcode &&
                   same_expression(kernel_, operation->getRHS(), coordinate_.factor)
               ? operation->getLHS()
               : nullptr;
  }

  std::vector<Rewrite> regrouped() {
    std::vector<Values> numbers;
    for (const Site& site : sites_) {
      numbers.push_back(*values_.of(*as_grouped(site)->number));
    }
    const std::int64_t together = widest_step(numbers, 0);
    std::int64_t whole = 0;
    for (const Values& values : numbers) {
      whole = std::max(whole, *values.rbegin() + widest_step({values}, 0));
    }
    const std::vector<Constant> constants = find_constants(kernel_);
    const auto group = std::ranges::find_if(constants, [&](const Constant& constant) {
      return constant.free && constant.declaration == variable_of(coordinate_.factor);
    });
    if (group == constants.end() || whole % together != 0) {
      return {};
    }
    const ConstantRules rules = find_rules(kernel_);
    std::set<std::int64_t, std::greater<>> sizes(group_sizes.begin(), group_sizes.end());
    sizes.insert(whole);
    std::vector<Rewrite> result;
    for (const std::int64_t size : sizes) {
      const auto edit = set_constant(kernel_, *group, size);
      if (edit && size != group->value && whole % size == 0 && size % together == 0 &&
          fits(*group, size, rules)) {
        result.push_back({label(size), {*edit}});
      }
    }
    return !result.empty() && may_exchange(together, whole) ? result : std::vector<Rewrite>{};
  }

  /// Whether groups of that size still stand side by side.
  bool fits(const Constant& group, std::int64_t size, const ConstantRules& rules) const {
    Evaluator evaluator(kernel_, {{group.declaration, size}});
    return !check_rules(rules, evaluator) && std::ranges::all_of(sites_, [&](const Site& site) {
      const auto stride = evaluator.value(*as_grouped(site)->stride);
      const auto* known = std::get_if<std::int64_t>(&stride);
      return known != nullptr && *known == coordinate_.positions * size;
    });
  }

  const Kernel& kernel_;
  const ThreadBlock& block_;
  const CounterValues& values_;
  const Coordinate& coordinate_;
  ThreadExchange& exchange_;
  std::vector<Site> sites_;
};

/// How many positions there are, in terms of constants: of thread / columns and thread % columns.
std::optional<std::string> written_positions(const Kernel& kernel, const ThreadBlock& block,
                                             const clang::Expr& position, std::int64_t positions) {
  const auto* operation = dyn_cast<clang::BinaryOperator>(position.IgnoreParenImpCasts());
  const auto columns =
      operation != nullptr ? constant_value(kernel, *operation->getRHS()) : std::nullopt;
  if (!columns || *columns < 1) {
    return std::nullopt;
  }
  const bool is_column = operation->getOpcode() == clang::BO_Rem && *columns == positions;
  const bool is_row =
      operation->getOpcode() == clang::BO_Div && block.threads == *columns * positions;
  const auto written =
      operand(kernel, *operation->getRHS(), is_row ? Binding::Operand : Binding::Product);
  if (!written || (!is_column && !is_row)) {
    return std::nullopt;
  }
  return is_row ? block.written + " / " + *written : *written;
}

/// Whether every number from 0 to the greatest appears, equally often.
std::optional<std::int64_t> count_of_positions(const std::vector<std::int64_t>& values) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const std::int64_t value : values) {
    ++counts[value];
  }
  const auto positions = static_cast<std::int64_t>(counts.size());
  const bool even = std::ranges::all_of(counts, [&](const auto& entry) {
    return 0 <= entry.first && entry.first < positions &&
           entry.second * positions == static_cast<std::int64_t>(values.size());
  });
  return even && positions > 1 ? std::optional(positions) : std::nullopt;
}

std::optional<Coordinate> coordinate(const Kernel& kernel, const ThreadBlock& block,
                                     const clang::VarDecl& variable) {
  const auto* product = dyn_cast<clang::BinaryOperator>(variable.getInit()->IgnoreParenImpCasts());
  if (product == nullptr || product->getOpcode() != clang::BO_Mul) {
    return std::nullopt;
  }
  const bool last = constant_value(kernel, *product->getRHS()).has_value();
  const clang::Expr& factor = last ? *product->getRHS() : *product->getLHS();
  const clang::Expr& position = last ? *product->getLHS() : *product->getRHS();
  const auto group = constant_value(kernel, factor);
  Evaluator evaluator(kernel);
  const auto values =
      group && *group > 0 ? thread_values(evaluator, block, position) : std::nullopt;
  const auto positions = values ? count_of_positions(*values) : std::nullopt;
  const auto written =
      positions ? written_positions(kernel, block, position, *positions) : std::nullopt;
  return written ? std::optional(Coordinate{.variable = &variable,
                                            .factor = factor.IgnoreParenImpCasts(),
                                            .group = *group,
                                            .positions = *positions,
                                            .written_positions = *written})
                 : std::nullopt;
}

} // namespace

std::vector<Rewrite> interleavings(const Kernel& kernel, const ThreadBlock& block,
                                   ThreadExchange& exchange) {
  const CounterValues values(kernel, *block.function);
  std::vector<Rewrite> result;
  for (const clang::VarDecl* local : block.locals) {
    if (const auto found = coordinate(kernel, block, *local)) {
      auto rewrites = Interleaving(kernel, block, values, *found, exchange).rewrites();
      std::ranges::move(rewrites, std::back_inserter(result));
    }
  }
  return result;
}

} // namespace evo
