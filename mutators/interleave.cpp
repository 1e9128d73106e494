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

#include "mutators/analysis/constants.hpp"
#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/counter_values.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/constant_placement.hpp"
#include "mutators/names.hpp"
#include "mutators/render.hpp"
#include "mutators/target.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

using Values = CounterValues::Values;

constexpr std::array<std::int64_t, 3> group_sizes{4, 2, 1};

/// const int thread_col = threadIdx.x % threads_n * thread_n: where a thread's part of a tile's
/// rows or columns begins.
struct Coordinate {
  const clang::VarDecl* variable = nullptr;
  const clang::Expr* position = nullptr; // threadIdx.x % threads_n
  const clang::Expr* factor = nullptr;   // its elements side by side
  std::int64_t group = 0;                // the factor's value
  std::int64_t positions = 0;
  std::string written_positions;            // a product or quotient of constants
  const clang::VarDecl* of_block = nullptr; // the block's size, where that mentions it
  std::int64_t lanes = 0; // neighbouring positions in every warp; 0 where that differs
  // In groups that are side by side in a warp alone:
  // position / warp_lanes * warp_tile + position % warp_lanes * factor
  const clang::Expr* warp_lanes = nullptr;
  const clang::Expr* warp_tile = nullptr;
};

/// Where a thread's groups go: side by side with those of all threads, or of its warp.
enum class Among { Block, Warp };

/// A sum of the coordinate, an element's number and whatever else.
struct NumberedElement {
  const clang::Expr* element = nullptr; // its number, or what that leaves in its group
  Values values;                        // of it
  std::vector<const clang::Expr*> summands;
};

/// The number of an element that a sum takes in groups: number / group * stride + number % group.
struct Grouped {
  const clang::Expr* number = nullptr;
  const clang::Expr* stride = nullptr;
};

class CoordinateUses : public SyntaxVisitor {
public:
  explicit CoordinateUses(const clang::VarDecl& variable) : variable_(variable) {}

  bool VisitDeclRefExpr(clang::DeclRefExpr* reference) override {
    if (reference->getDecl() == &variable_) {
      found.push_back(reference);
    }
    return true;
  }

  std::vector<const clang::Expr*> found;

private:
  const clang::VarDecl& variable_;
};

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
    if (std::ranges::all_of(
            sites_, [&](const NumberedElement& site) { return as_grouped(site).has_value(); })) {
      return regrouped();
    }
    return coordinate_.warp_lanes == nullptr ? grouped() : std::vector<Rewrite>{};
  }

private:
  std::string label(std::int64_t group, Among among = Among::Block) const {
    return block_.function->getNameAsString() + "/" + coordinate_.variable->getNameAsString() +
           " groups " + std::to_string(group) + (among == Among::Warp ? " in warps" : "");
  }

  std::string fresh(const std::string& suffix) const {
    return Names(kernel_).fresh(block_.function->getNameAsString() + "_" +
                                coordinate_.variable->getNameAsString() + suffix);
  }

  /// The sums that a variable which holds the coordinate stands in. One that has no element yet is
  /// followed to the variable that it defines.
  bool add_sites(const clang::VarDecl& holder) {
    CoordinateUses uses(holder);
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

  std::vector<NumberedElement> elements_of(const clang::Expr& sum) const {
    std::vector<const clang::Expr*> summands;
    add_summands(sum, summands);
    std::vector<NumberedElement> elements;
    for (const clang::Expr* summand : summands) {
      const auto values = values_.of(*summand);
      if (values && *values->begin() >= 0 && *values->rbegin() < coordinate_.group) {
        elements.push_back({summand, *values, summands});
      }
    }
    // Of one group there is but number 0, which says less than what it leaves in its group.
    const auto grouped = std::ranges::find_if(
        elements, [&](const NumberedElement& site) { return as_grouped(site).has_value(); });
    return grouped == elements.end() ? elements : std::vector<NumberedElement>{*grouped};
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
    std::ranges::transform(sites_, std::back_inserter(numbers), &NumberedElement::values);
    const std::int64_t together = widest_step(numbers, coordinate_.group);
    std::vector<Rewrite> result;
    for (const Among among : {Among::Block, Among::Warp}) {
      for (const std::int64_t group : group_sizes) {
        if (group < coordinate_.group && coordinate_.group % group == 0 && group % together == 0) {
          if (auto edits = grouped(group, among)) {
            result.push_back({label(group, among), std::move(*edits)});
          }
        }
      }
    }
    return !result.empty() && may_exchange(together, coordinate_.group) ? result
                                                                        : std::vector<Rewrite>{};
  }

  std::optional<std::vector<Edit>> grouped(std::int64_t group, Among among) const {
    const std::string name = fresh("_group");
    const auto whole = operand(kernel_, *coordinate_.factor, Binding::Product);
    const auto place =
        offset_behind(kernel_, mentioned_constants(*coordinate_.factor), *block_.function);
    std::string side_by_side = coordinate_.written_positions;
    std::vector<Edit> others;
    if (among == Among::Warp) {
      const auto lanes = in_warps(*coordinate_.factor, name);
      if (!lanes) {
        return std::nullopt;
      }
      side_by_side = lanes->name;
      others = lanes->edits;
    } else if (const auto factor = span_of(kernel_, coordinate_.factor->getSourceRange())) {
      others.push_back({factor->begin, factor->length(), name});
    }
    auto edits = with_elements([&](const NumberedElement&, const std::string& element) {
      return element + " / " + name + " * (" + side_by_side + " * " + name + ") + " + element +
             " % " + name;
    });
    if (!whole || !place || !edits || others.empty()) {
      return std::nullopt;
    }
    edits->push_back({*place, 0,
                      "constexpr int " + name + " = " + std::to_string(group) + ";\n" + //
                          "static_assert(" + *whole + " % " + name + " == 0);\n"});
    std::ranges::move(others, std::back_inserter(*edits));
    sort_edits(*edits);
    return edits;
  }

  /// A new constant for the lanes of a warp along the coordinate, and where that begins then.
  struct Lanes {
    std::string name;
    std::vector<Edit> edits;
  };

  std::optional<Lanes> in_warps(const clang::Expr& whole, const std::string& group) const {
    const auto span = span_of(kernel_, coordinate_.variable->getInit()->getSourceRange());
    const auto position = operand(kernel_, *coordinate_.position, Binding::Product);
    const auto elements = operand(kernel_, whole, Binding::Operand);
    std::vector<const clang::VarDecl*> constants = mentioned_constants(*coordinate_.position);
    constants.push_back(coordinate_.of_block);
    std::erase(constants, nullptr);
    const auto place = offset_behind(kernel_, constants, *block_.function);
    if (coordinate_.lanes <= 1 || coordinate_.lanes >= coordinate_.positions || !span ||
        !position || !elements || !place) {
      return std::nullopt;
    }
    const std::string name = fresh("_lanes");
    return Lanes{
        name,
        {{*place, 0,
          "constexpr int " + name + " = " + std::to_string(coordinate_.lanes) + ";\n" +
              "static_assert(" + coordinate_.written_positions + " % " + name + " == 0);\n"},
         {span->begin, span->length(),
          *position + " / " + name + " * (" + name + " * " + *elements + ") + " + *position +
              " % " + name + " * " + group}}};
  }

  /// With `map` applied to every element's number; nullopt in a macro, and where two sums share
  /// one.
  template <class Map> std::optional<std::vector<Edit>> with_elements(const Map& map) const {
    std::vector<Edit> edits;
    for (const NumberedElement& site : sites_) {
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
    const auto edits = with_elements([&](const NumberedElement& site, const std::string& element) {
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

  std::optional<Grouped> as_grouped(const NumberedElement& site) const {
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
    for (const NumberedElement& site : sites_) {
      numbers.push_back(*values_.of(*as_grouped(site)->number));
    }
    const std::int64_t together = widest_step(numbers, 0);
    std::int64_t whole = 0;
    for (const Values& values : numbers) {
      whole = std::max(whole, *values.rbegin() + widest_step({values}, 0));
    }
    const auto group = constant(coordinate_.factor);
    if (!group || whole % together != 0) {
      return {};
    }
    std::set<std::int64_t, std::greater<>> sizes(group_sizes.begin(), group_sizes.end());
    sizes.insert(whole);
    std::vector<Rewrite> result;
    for (const Among among : {Among::Block, Among::Warp}) {
      for (const std::int64_t size : sizes) {
        if (whole % size == 0 && size % together == 0 && (among == Among::Block || size < whole)) {
          if (auto edits = regrouped(*group, size, whole, among)) {
            result.push_back({label(size, among), std::move(*edits)});
          }
        }
      }
    }
    return !result.empty() && may_exchange(together, whole) ? result : std::vector<Rewrite>{};
  }

  /// nullopt where that changes nothing, and for groups that go back from the warp to the block,
  /// unless each thread has but one.
  std::optional<std::vector<Edit>> regrouped(const Constant& group, std::int64_t size,
                                             std::int64_t whole, Among among) const {
    const bool warps = coordinate_.warp_lanes != nullptr;
    std::vector<std::pair<Constant, std::int64_t>> values{{group, size}};
    if (warps && among == Among::Warp) {
      const auto lanes = constant(coordinate_.warp_lanes);
      if (!lanes || coordinate_.lanes <= 1 || coordinate_.lanes >= coordinate_.positions) {
        return std::nullopt;
      }
      values.emplace_back(*lanes, coordinate_.lanes);
    }
    if ((warps && among == Among::Block && size != whole) || !fits(values, size, whole)) {
      return std::nullopt;
    }
    auto edits = with_values(values);
    if (edits && !warps && among == Among::Warp) {
      const auto moved = moved_into_warps(whole);
      if (!moved) {
        return std::nullopt;
      }
      std::ranges::copy(*moved, std::back_inserter(*edits));
      sort_edits(*edits);
    }
    return edits && !edits->empty() ? edits : std::nullopt;
  }

  /// Groups that stood side by side in the block, now in its warps.
  std::optional<std::vector<Edit>> moved_into_warps(std::int64_t whole) const {
    const clang::Expr* elements = written(whole);
    const std::string group = text(*coordinate_.factor);
    const auto lanes = elements != nullptr ? in_warps(*elements, group) : std::nullopt;
    if (!lanes) {
      return std::nullopt;
    }
    std::vector<Edit> edits = lanes->edits;
    for (const NumberedElement& site : sites_) {
      const auto stride = span_of(kernel_, as_grouped(site)->stride->getSourceRange());
      if (!stride) {
        return std::nullopt;
      }
      edits.push_back({stride->begin, stride->length(), "(" + lanes->name + " * " + group + ")"});
    }
    return edits;
  }

  /// How the loops over a thread's elements write their number.
  const clang::Expr* written(std::int64_t whole) const {
    for (const DeviceLoop& loop : device_loops(kernel_)) {
      const auto limit = constant_value(kernel_, *loop.counted.limit);
      const bool counts = std::ranges::any_of(sites_, [&](const NumberedElement& site) {
        return mentions(*as_grouped(site)->number, *loop.counted.counter);
      });
      if (counts && limit == whole) {
        return loop.counted.limit;
      }
    }
    return nullptr;
  }

  /// The free constant that an expression names.
  std::optional<Constant> constant(const clang::Expr* expr) const {
    const std::vector<Constant> constants = find_constants(kernel_);
    const auto found = std::ranges::find_if(constants, [&](const Constant& constant) {
      return constant.free && constant.declaration == variable_of(expr);
    });
    return found == constants.end() ? std::nullopt : std::optional(*found);
  }

  std::optional<std::vector<Edit>>
  with_values(const std::vector<std::pair<Constant, std::int64_t>>& values) const {
    std::vector<Edit> edits;
    for (const auto& [constant, value] : values) {
      const auto edit = set_constant(kernel_, constant, value);
      if (!edit) {
        return std::nullopt;
      }
      if (value != constant.value) {
        edits.push_back(*edit);
      }
    }
    sort_edits(edits);
    return edits;
  }

  /// Whether groups of that size still stand side by side.
  bool fits(const std::vector<std::pair<Constant, std::int64_t>>& values, std::int64_t size,
            std::int64_t whole) const {
    Assignment assignment;
    for (const auto& [constant, value] : values) {
      assignment[constant.declaration] = value;
    }
    Evaluator evaluator(kernel_, assignment);
    const auto is = [&](const clang::Expr& expr, std::int64_t expected) {
      const auto value = evaluator.value(expr);
      const auto* known = std::get_if<std::int64_t>(&value);
      return known != nullptr && *known == expected;
    };
    std::int64_t among = coordinate_.positions;
    if (coordinate_.warp_lanes != nullptr) {
      const auto lanes = evaluator.value(*coordinate_.warp_lanes);
      const auto* known = std::get_if<std::int64_t>(&lanes);
      among = known != nullptr ? *known : 0;
      if (among < 1 || coordinate_.positions % among != 0 ||
          !is(*coordinate_.warp_tile, among * whole)) {
        return false;
      }
    }
    return !check_rules(find_rules(kernel_), evaluator) &&
           std::ranges::all_of(sites_, [&](const NumberedElement& site) {
             return is(*as_grouped(site)->stride, among * size);
           });
  }

  const Kernel& kernel_;
  const ThreadBlock& block_;
  const CounterValues& values_;
  const Coordinate& coordinate_;
  ThreadExchange& exchange_;
  std::vector<NumberedElement> sites_;
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

/// How many neighbouring positions every warp has, from a multiple of that many on; 0 where that
/// differs.
std::int64_t lanes_of_warps(const std::vector<std::int64_t>& positions) {
  std::set<std::int64_t> sizes;
  for (auto warp = positions.begin(); positions.end() - warp >= warp_size; warp += warp_size) {
    const std::set<std::int64_t> own(warp, warp + warp_size);
    const auto size = static_cast<std::int64_t>(own.size());
    const bool neighbours = *own.rbegin() - *own.begin() + 1 == size && *own.begin() % size == 0;
    sizes.insert(neighbours ? size : 0);
  }
  return sizes.size() == 1 && positions.size() % warp_size == 0 ? *sizes.begin() : 0;
}

/// The operands of an operation.
struct Operands {
  const clang::Expr* left = nullptr;
  const clang::Expr* right = nullptr;
};

std::optional<Operands> operands(const clang::Expr& expr, int opcode) {
  const auto* operation = dyn_cast<clang::BinaryOperator>(expr.IgnoreParenImpCasts());
  return operation != nullptr && operation->getOpcode() == opcode
             ? std::optional(Operands{operation->getLHS(), operation->getRHS()})
             : std::nullopt;
}

/// A product with a constant, on the right.
std::optional<Operands> scaled(const Kernel& kernel, const clang::Expr& expr) {
  const auto product = operands(expr, clang::BO_Mul);
  return product && !constant_value(kernel, *product->right)
             ? std::optional(Operands{product->right, product->left})
             : product;
}

/// How a definition is written, of positions that are not known yet.
std::optional<Coordinate> as_written(const Kernel& kernel, const clang::VarDecl& variable) {
  const clang::Expr& definition = *variable.getInit();
  Coordinate result;
  result.variable = &variable;
  if (const auto product = scaled(kernel, definition)) {
    result.position = product->left;
    result.factor = product->right->IgnoreParenImpCasts();
    return result;
  }
  const auto sum = operands(definition, clang::BO_Add);
  const auto tile = sum ? scaled(kernel, *sum->left) : std::nullopt;
  const auto element = sum ? scaled(kernel, *sum->right) : std::nullopt;
  const auto warp = tile ? operands(*tile->left, clang::BO_Div) : std::nullopt;
  const auto lane = element ? operands(*element->left, clang::BO_Rem) : std::nullopt;
  if (!warp || !lane || !same_expression(kernel, warp->left, lane->left) ||
      !same_expression(kernel, warp->right, lane->right)) {
    return std::nullopt;
  }
  result.position = lane->left;
  result.factor = element->right->IgnoreParenImpCasts();
  result.warp_lanes = lane->right;
  result.warp_tile = tile->right;
  return result;
}

std::optional<Coordinate> coordinate(const Kernel& kernel, const ThreadBlock& block,
                                     const clang::VarDecl& variable) {
  auto result = as_written(kernel, variable);
  if (!result) {
    return std::nullopt;
  }
  Evaluator evaluator(kernel);
  result->group = constant_value(kernel, *result->factor).value_or(0);
  const auto values =
      result->group > 0 ? thread_values(evaluator, block, *result->position) : std::nullopt;
  const auto positions = values ? count_of_positions(*values) : std::nullopt;
  const auto written =
      positions ? written_positions(kernel, block, *result->position, *positions) : std::nullopt;
  if (!written) {
    return std::nullopt;
  }
  result->positions = *positions;
  result->written_positions = *written;
  result->of_block = operands(*result->position, clang::BO_Div) ? block.named : nullptr;
  result->lanes = lanes_of_warps(*values);
  return result;
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
