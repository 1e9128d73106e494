#include "mutators/interior_condition.hpp"

#include <algorithm>
#include <utility>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// block * tile, also behind the name of a variable: the tile's extent.
const clang::Expr* extent_of(const Kernel& kernel, const clang::Expr& origin) {
  const clang::Expr* expr = origin.IgnoreParenImpCasts();
  const auto* variable = variable_of(expr);
  if (variable != nullptr && variable->getType().isConstQualified() && variable->hasInit()) {
    return extent_of(kernel, *variable->getInit());
  }
  const auto* product = dyn_cast<clang::BinaryOperator>(expr);
  if (product == nullptr || product->getOpcode() != clang::BO_Mul) {
    return nullptr;
  }
  return constant_value(kernel, *product->getRHS())   ? product->getRHS()
         : constant_value(kernel, *product->getLHS()) ? product->getLHS()
                                                      : nullptr;
}

void summands(const clang::Expr& expr, std::vector<const clang::Expr*>& found) {
  const auto* sum = dyn_cast<clang::BinaryOperator>(expr.IgnoreParenImpCasts());
  if (sum != nullptr && sum->getOpcode() == clang::BO_Add) {
    summands(*sum->getLHS(), found);
    summands(*sum->getRHS(), found);
  } else {
    found.push_back(&expr);
  }
}

/// The integer parameters that an expression names.
void sizes_in(const clang::Stmt& code, std::vector<const clang::Expr*>& found) {
  if (const auto* use = dyn_cast<clang::DeclRefExpr>(&code)) {
    const bool is_new = std::ranges::none_of(
        found, [&](const clang::Expr* known) { return variable_of(known) == use->getDecl(); });
    if (clang::isa<clang::ParmVarDecl>(use->getDecl()) && use->getType()->isIntegerType() &&
        is_new) {
      found.push_back(use);
    }
  }
  for (const clang::Stmt* child : code.children()) {
    sizes_in(*child, found);
  }
}

bool has_no_minus(const std::optional<LinearForm>& form) {
  return form && form->rest.least >= 0 &&
         std::ranges::all_of(form->terms,
                             [](const LinearTerm& term) { return term.coefficient > 0; });
}

} // namespace

InteriorCondition::InteriorCondition(const Kernel& kernel, const clang::FunctionDecl& function,
                                     std::vector<CountedLoop> loops, unsigned offset)
    : kernel_(kernel), function_(function), offset_(offset), view_(kernel, function, offset),
      first_tiles_(find_first_tiles(kernel, function)) {
  for (const CountedLoop& loop : loops) {
    if (const auto found = tile_loop(loop)) {
      loops_.push_back(*found);
    }
  }
}

bool InteriorCondition::implies(const Condition& condition) {
  const auto parts = needs(condition);
  if (parts) {
    add(*parts);
  }
  return parts.has_value();
}

void InteriorCondition::add(const Parts& parts) {
  for (const Part& part : parts) {
    if (std::ranges::find(parts_, part) == parts_.end()) {
      parts_.push_back(part);
    }
  }
}

std::string InteriorCondition::text() const {
  Parts sorted = parts_;
  std::ranges::stable_sort(sorted, {}, &Part::kind);
  std::string result;
  for (const Part& part : sorted) {
    result += (result.empty() ? "" : " && ") + part.text;
  }
  return result;
}

std::optional<InteriorCondition::Parts> InteriorCondition::needs(const Condition& condition) {
  Parts all;
  for (const Condition& part : conjuncts({condition})) {
    const auto parts = needs_of_part(part);
    if (!parts) {
      return std::nullopt;
    }
    all.insert(all.end(), parts->begin(), parts->end());
  }
  return all;
}

std::optional<InteriorCondition::Parts> InteriorCondition::needs_of_part(const Condition& part) {
  if (const clang::VarDecl* variable = variable_of(part.expression)) {
    const bool known = variable->getType().isConstQualified() &&
                       variable->getType()->isBooleanType() && variable->hasInit();
    return known ? needs({variable->getInit(), part.holds}) : std::nullopt;
  }
  const auto* comparison = dyn_cast<clang::BinaryOperator>(part.expression);
  if (comparison == nullptr || !comparison->isComparisonOp() ||
      !comparison->getLHS()->getType()->isIntegerType()) {
    return std::nullopt;
  }
  auto opcode = part.holds ? comparison->getOpcode()
                           : clang::BinaryOperator::negateComparisonOp(comparison->getOpcode());
  const clang::Expr* lower = comparison->getLHS();
  const clang::Expr* upper = comparison->getRHS();
  if (opcode == clang::BO_EQ) {
    const auto* remainder = dyn_cast<clang::BinaryOperator>(lower->IgnoreParenImpCasts());
    return remainder != nullptr && remainder->getOpcode() == clang::BO_Rem &&
                   constant_value(kernel_, *upper) == 0
               ? divisible(*remainder)
               : std::nullopt;
  }
  if (opcode == clang::BO_GT || opcode == clang::BO_GE) {
    opcode = clang::BinaryOperator::reverseComparisonOp(opcode);
    std::swap(lower, upper);
  }
  return opcode == clang::BO_NE ? std::nullopt
                                : needs_of_order(*lower, *upper, opcode == clang::BO_LT);
}

/// Whether neither side of a comparison wraps around where it is unsigned.
bool InteriorCondition::is_signed_enough(const clang::Expr& lower, const clang::Expr& upper) {
  return lower.getType()->isSignedIntegerType() ||
         (has_no_minus(view_.of(lower)) && has_no_minus(view_.of(upper)));
}

/// lower < upper, or <=. Where the size is all that upper has of terms, the largest lower is that
/// of the tile's end.
std::optional<InteriorCondition::Parts>
InteriorCondition::needs_of_order(const clang::Expr& lower, const clang::Expr& upper, bool strict) {
  const auto form = view_.difference(upper, lower);
  const LinearTerm* size = form ? form->only(LinearTerm::Kind::Size) : nullptr;
  if (size == nullptr || size->coefficient != 1 || form->terms.size() > 2 ||
      !is_signed_enough(lower, upper)) {
    return std::nullopt;
  }
  const std::int64_t room = form->rest.least - (strict ? 1 : 0);
  if (form->terms.size() == 1) { // inside the first k tile, which is whole
    for (const TileLoop& loop : loops_) {
      if (auto parts = inside_tile({loop.size, 0, loop.step, loop.step_value}, *size, room)) {
        return parts;
      }
    }
    return inside_first_tiles(*size, room);
  }
  const LinearTerm& other = form->terms[&form->terms[0] == size ? 1 : 0];
  if (other.coefficient != -1) {
    return std::nullopt;
  }
  if (other.kind == LinearTerm::Kind::Origin) {
    return inside_tile(other, *size, room);
  }
  const auto counted = loop_of_counter(kernel_, *variable_of(other.expr));
  const auto loop = counted ? tile_loop(*counted) : std::nullopt;
  return loop ? inside_tile(*loop, *size, room) : std::nullopt;
}

/// 0 <= size - origin + room, given that the tile which begins at the origin ends inside.
std::optional<InteriorCondition::Parts> InteriorCondition::inside_tile(const LinearTerm& origin,
                                                                       const LinearTerm& size,
                                                                       std::int64_t room) {
  const clang::Expr* extent = extent_of(kernel_, *origin.expr);
  if (extent == nullptr || *constant_value(kernel_, *extent) + room < 0 ||
      !can_be_written(*origin.expr) || !can_be_written(*extent)) {
    return std::nullopt;
  }
  const auto written = operand(kernel_, *extent, Binding::Sum);
  return written ? std::optional(Parts{{Kind::Inside, text(*origin.expr) + " + " + *written +
                                                          " <= " + text(*size.expr)}})
                 : std::nullopt;
}

/// 0 <= size + room, given that all tiles which a prologue loads exist.
std::optional<InteriorCondition::Parts>
InteriorCondition::inside_first_tiles(const LinearTerm& size, std::int64_t room) {
  for (const FirstTiles& tiles : first_tiles_) {
    const auto elements = elements_text(kernel_, tiles);
    if (tiles.elements + room >= 0 && elements && can_be_written(*tiles.count) &&
        can_be_written(*tiles.step)) {
      return Parts{{Kind::Long, *elements + " <= " + text(*size.expr)}};
    }
  }
  return std::nullopt;
}

/// 0 <= size - counter + room, given that the tiles which the loop goes through are whole: then
/// the counter is size + rest - step at most.
std::optional<InteriorCondition::Parts>
InteriorCondition::inside_tile(const TileLoop& loop, const LinearTerm& size, std::int64_t room) {
  return same_expression(kernel_, loop.size, size.expr) && loop.step_value - loop.rest + room >= 0
             ? std::optional(Parts{whole_tiles(loop)})
             : std::nullopt;
}

InteriorCondition::Part InteriorCondition::whole_tiles(const TileLoop& loop) const {
  return {Kind::Divisible, text(*loop.size) + " % " +
                               operand(kernel_, *loop.step, Binding::Operand).value_or("") +
                               " == 0"};
}

std::optional<InteriorCondition::TileLoop> InteriorCondition::tile_loop(const CountedLoop& loop) {
  const auto limit = view_.of(*loop.limit);
  const auto start = constant_value(kernel_, *loop.start);
  if (!limit || limit->terms.size() != 1 || limit->only(LinearTerm::Kind::Size) == nullptr ||
      limit->terms[0].coefficient != 1 || !limit->rest.is_constant() || !start ||
      loop.step == nullptr || !can_be_written(*loop.step) || *start % loop.step_value != 0 ||
      limit->rest.least % loop.step_value != 0 || !operand(kernel_, *loop.step, Binding::Operand)) {
    return std::nullopt;
  }
  return TileLoop{limit->terms[0].expr, limit->rest.least, loop.step, loop.step_value};
}

/// x % c == 0, for a size or an address.
std::optional<InteriorCondition::Parts>
InteriorCondition::divisible(const clang::BinaryOperator& remainder) {
  const clang::Expr& divisor = *remainder.getRHS();
  const clang::Expr& dividend = *remainder.getLHS()->IgnoreParenImpCasts();
  if (!constant_value(kernel_, divisor) || !can_be_written(divisor)) {
    return std::nullopt;
  }
  const auto* cast = dyn_cast<clang::CastExpr>(&dividend);
  if (cast != nullptr && cast->getCastKind() == clang::CK_PointerToIntegral) {
    return aligned(*cast->getSubExpr()->IgnoreParenImpCasts(), divisor);
  }
  const auto form = view_.of(dividend);
  const bool size = form && form->terms.size() == 1 &&
                    form->only(LinearTerm::Kind::Size) != nullptr &&
                    variable_of(&dividend) == variable_of(form->terms[0].expr);
  const auto written = operand(kernel_, divisor, Binding::Operand);
  return size && written
             ? std::optional(Parts{{Kind::Divisible, text(dividend) + " % " + *written + " == 0"}})
             : std::nullopt;
}

/// &array[index] or array, at a multiple of so many bytes: the array begins at one, and so many
/// elements divide the index, if need be since they divide the size.
std::optional<InteriorCondition::Parts> InteriorCondition::aligned(const clang::Expr& pointer,
                                                                   const clang::Expr& bytes) {
  const auto* address = dyn_cast<clang::UnaryOperator>(&pointer);
  const auto* element =
      address == nullptr || address->getOpcode() != clang::UO_AddrOf
          ? nullptr
          : dyn_cast<clang::ArraySubscriptExpr>(address->getSubExpr()->IgnoreParenImpCasts());
  const clang::Expr& array =
      element == nullptr ? pointer : *element->getBase()->IgnoreParenImpCasts();
  const auto* parameter = clang::dyn_cast_or_null<clang::ParmVarDecl>(variable_of(&array));
  const auto divisor = operand(kernel_, bytes, Binding::Operand);
  if (parameter == nullptr || !parameter->getType()->isPointerType() || !divisor ||
      may_change(*function_.getBody(), *parameter)) {
    return std::nullopt;
  }
  Parts parts{{Kind::Aligned, "reinterpret_cast<size_t>(" + parameter->getNameAsString() + ") % " +
                                  *divisor + " == 0"}};
  if (element == nullptr) {
    return parts;
  }
  const std::int64_t wanted = *constant_value(kernel_, bytes);
  const std::int64_t each =
      kernel_.ast().getTypeSizeInChars(parameter->getType()->getPointeeType()).getQuantity();
  const auto divides = [&](std::int64_t of_sizes) {
    return view_.multiple(*element->getIdx(), of_sizes) * each % wanted == 0;
  };
  if (divides(1)) {
    return parts;
  }
  std::vector<const clang::Expr*> sizes;
  sizes_in(*element->getIdx(), sizes);
  if (sizes.size() != 1 || wanted % each != 0 || !divides(wanted / each)) {
    return std::nullopt;
  }
  parts.push_back(
      {Kind::Divisible, text(*sizes[0]) + " % " + std::to_string(wanted / each) + " == 0"});
  return parts;
}

std::optional<std::string> InteriorCondition::uniform(const Condition& condition) {
  const auto* comparison = dyn_cast<clang::BinaryOperator>(condition.expression);
  if (comparison == nullptr || !condition.holds) {
    return std::nullopt;
  }
  const bool is_less = comparison->getOpcode() == clang::BO_LT;
  if (!is_less && comparison->getOpcode() != clang::BO_GT) {
    return std::nullopt;
  }
  const clang::Expr& lower = is_less ? *comparison->getLHS() : *comparison->getRHS();
  const clang::Expr& upper = is_less ? *comparison->getRHS() : *comparison->getLHS();
  for (const TileLoop& loop : loops_) {
    const auto sum = same_expression(kernel_, &upper, loop.size) && is_signed_enough(lower, upper)
                         ? without_threads(lower, loop)
                         : std::nullopt;
    if (sum) {
      add({whole_tiles(loop)});
      return *sum + " < " + text(upper);
    }
  }
  return std::nullopt;
}

/// The summands that are multiples of the loop's step in all threads alike, where the others stay
/// within a step and differ by thread.
std::optional<std::string> InteriorCondition::without_threads(const clang::Expr& sum,
                                                              const TileLoop& loop) {
  std::vector<const clang::Expr*> parts;
  summands(sum, parts);
  std::string kept;
  Bounds rest;
  bool depends_on_thread = false;
  for (const clang::Expr* part : parts) {
    if (view_.is_uniform(*part) && view_.multiple(*part, loop.step_value) % loop.step_value == 0) {
      const auto written = operand(kernel_, *part, Binding::Sum);
      if (!written) {
        return std::nullopt;
      }
      kept += (kept.empty() ? "" : " + ") + *written;
      continue;
    }
    const auto form = view_.of(*part);
    if (!form || !form->terms.empty()) {
      return std::nullopt;
    }
    depends_on_thread |= !view_.is_uniform(*part);
    rest = {rest.least + form->rest.least, rest.greatest + form->rest.greatest, 1};
  }
  const bool within = rest.least >= 0 && rest.greatest < loop.step_value;
  return depends_on_thread && within && !kept.empty() ? std::optional(kept) : std::nullopt;
}

/// Whether everything that the code names has been declared where the condition will stand.
bool InteriorCondition::can_be_written(const clang::Stmt& code) const {
  if (const auto* use = dyn_cast<clang::DeclRefExpr>(&code)) {
    const clang::SourceManager& sources = kernel_.ast().getSourceManager();
    const clang::ValueDecl& declaration = *use->getDecl();
    const bool local = declaration.getDeclContext() == &function_;
    return !local || sources.getFileOffset(declaration.getLocation()) < offset_;
  }
  return span_of(kernel_, code.getSourceRange()) &&
         std::ranges::all_of(code.children(), [this](const clang::Stmt* child) {
           return child == nullptr || can_be_written(*child);
         });
}

std::string InteriorCondition::text(const clang::Expr& expr) const {
  return operand(kernel_, expr, Binding::Sum).value_or("");
}

} // namespace evo
