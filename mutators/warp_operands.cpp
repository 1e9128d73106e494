#include "mutators/warp_operands.hpp"

#include <algorithm>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/TypeLoc.h>

#include "mutators/analysis/exchange.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/single_buffered.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/analysis/warp_products.hpp"
#include "mutators/leaf_helpers.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// What a piece of code mentions, in source order.
class Mentions : public SyntaxVisitor {
public:
  explicit Mentions(const clang::Stmt& code) { TraverseStmt(const_cast<clang::Stmt*>(&code)); }

  bool VisitCallExpr(clang::CallExpr* call) override {
    if (multiplies_matrices(*call)) {
      products.push_back(call);
    }
    return true;
  }
  bool VisitArraySubscriptExpr(clang::ArraySubscriptExpr* element) override {
    elements.push_back(element);
    return true;
  }
  bool VisitBinaryOperator(clang::BinaryOperator* operation) override {
    if (operation->isAssignmentOp()) {
      assignments.push_back(operation);
    }
    if (operation->getOpcode() == clang::BO_LT) {
      comparisons.push_back(operation);
    }
    return true;
  }
  bool VisitDeclRefExpr(clang::DeclRefExpr* reference) override {
    if (const auto* variable = dyn_cast<clang::VarDecl>(reference->getDecl())) {
      variables.push_back(variable);
    }
    return true;
  }

  std::vector<const clang::CallExpr*> products;
  std::vector<const clang::ArraySubscriptExpr*> elements;
  std::vector<const clang::BinaryOperator*> assignments;
  std::vector<const clang::BinaryOperator*> comparisons;
  std::vector<const clang::VarDecl*> variables;
};

const clang::ArraySubscriptExpr* subscript_in(const clang::Expr& expr) {
  return dyn_cast<clang::ArraySubscriptExpr>(expr.IgnoreParenImpCasts());
}

/// The array that subscripts begin with.
const clang::VarDecl* base_of(const clang::ArraySubscriptExpr& element) {
  const auto* outer = subscript_in(*element.getBase());
  return outer != nullptr ? base_of(*outer) : variable_of(element.getBase());
}

/// Those of a sum, also where const variables stand for it or for parts of it.
void add_summands(const clang::Expr& expr, std::vector<const clang::Expr*>& found) {
  const auto* sum = dyn_cast<clang::BinaryOperator>(&definition_of(expr));
  if (sum != nullptr && sum->getOpcode() == clang::BO_Add) {
    add_summands(*sum->getLHS(), found);
    add_summands(*sum->getRHS(), found);
  } else {
    found.push_back(&expr);
  }
}

class OperandFinder {
public:
  OperandFinder(const Kernel& kernel, const ThreadBlock& block) : kernel_(kernel), block_(block) {}

  std::optional<WarpOperands> find(const std::vector<Stages>& stages) {
    result_.function = block_.function;
    const std::vector<const clang::CallExpr*> products =
        Mentions(*block_.function->getBody()).products;
    const bool found = products.size() == 1 && take_type(*products.front()) &&
                       take_loops(*products.front(), stages) && take_lane() &&
                       take(result_.left, *products.front()->getArg(1)) &&
                       take(result_.right, *products.front()->getArg(2)) &&
                       result_.left.matrix != result_.right.matrix &&
                       result_.left.tile != result_.right.tile;
    return found ? std::optional(std::move(result_)) : std::nullopt;
  }

private:
  bool take_type(const clang::CallExpr& product) {
    const LeafHelpers helpers(kernel_);
    for (const TensorType& type : tensor_types()) {
      if (helpers.find(type.multiply) == product.getDirectCallee()->getDefinition()) {
        result_.type = &type;
      }
    }
    result_.parts = count_of_parts(product);
    return result_.type != nullptr && result_.parts != nullptr;
  }

  bool take_loops(const clang::CallExpr& product, const std::vector<Stages>& all) {
    for (const Stages& stages : all) {
      if (stages.kernel == block_.function && !stages.inside_loop &&
          contains(*stages.loop, product)) {
        result_.stages = &stages;
      }
    }
    const auto buffered =
        result_.stages == nullptr ? std::nullopt : find_single_buffered(kernel_, *result_.stages);
    for (const DeviceLoop& loop : loops_) {
      if (loop.function == block_.function && loop.counted.step_value == result_.type->depth &&
          contains(*loop.counted.loop->getBody(), product)) {
        result_.k = loop;
      }
    }
    if (!buffered || result_.k.function == nullptr) {
      return false;
    }
    result_.tiles = buffered->loop;
    result_.depth = dyn_cast_or_null<clang::ParmVarDecl>(variable_of(buffered->loop.limit));
    return result_.depth != nullptr && constant_value(kernel_, *buffered->loop.start) == 0 &&
           buffered->loop.step != nullptr;
  }

  bool take_lane() {
    Evaluator evaluator(kernel_);
    for (const clang::VarDecl* local : block_.locals) {
      const auto values = thread_values(evaluator, block_, *local->getInit());
      bool is_lane = values.has_value();
      for (std::size_t thread = 0; is_lane && thread < values->size(); ++thread) {
        is_lane = (*values)[thread] == static_cast<std::int64_t>(thread) % 32;
      }
      result_.lane = is_lane ? local : result_.lane;
    }
    return result_.lane != nullptr;
  }

  bool take(WarpOperand& operand, const clang::Expr& argument) {
    const auto* fragment = subscript_in(argument);
    const clang::VarDecl* registers = fragment == nullptr ? nullptr : base_of(*fragment);
    return registers != nullptr && take_registers(operand, *registers) && take_tile(operand) &&
           take_load(operand) && take_matrix(operand);
  }

  bool take_registers(WarpOperand& operand, const clang::VarDecl& registers) {
    for (const clang::BinaryOperator* assignment :
         Mentions(*result_.k.counted.loop->getBody()).assignments) {
      const auto* slot = subscript_in(*assignment->getLHS());
      const auto* part = slot == nullptr ? nullptr : subscript_in(*slot->getBase());
      if (part == nullptr || base_of(*part) != &registers) {
        continue;
      }
      const clang::VarDecl* counter = variable_of(slot->getIdx());
      operand.part = variable_of(part->getIdx());
      operand.part_registers = part;
      const auto counted = counter == nullptr ? std::nullopt : loop_of_counter(kernel_, *counter);
      const DeviceLoop* loop = counted ? find_loop(loops_, *counted->loop) : nullptr;
      if (loop == nullptr || operand.part == nullptr || operand.slots.function != nullptr) {
        return false;
      }
      operand.slots = *loop;
    }
    return operand.slots.function != nullptr && take_accumulator(operand);
  }

  bool take_accumulator(WarpOperand& operand) const {
    for (const DeviceLoop& loop : loops_) {
      if (loop.counted.step_value == 2 &&
          contains(*result_.k.counted.loop->getBody(), *loop.counted.loop) &&
          contains(*loop.counted.loop->getBody(), *operand.slots.counted.loop)) {
        operand.accumulator = loop.counted.counter;
      }
    }
    return operand.accumulator != nullptr;
  }

  bool take_tile(WarpOperand& operand) {
    for (const clang::ArraySubscriptExpr* element :
         Mentions(*operand.slots.counted.loop->getBody()).elements) {
      const Memory memory = memory_of(*element);
      if (operand.element == nullptr && memory.space == Space::Shared) {
        operand.element = element; // the outermost subscript comes first
        operand.tile = memory.member != nullptr
                           ? static_cast<const clang::DeclaratorDecl*>(memory.member)
                           : memory.variable;
      }
    }
    const auto* outer =
        operand.element == nullptr ? nullptr : subscript_in(*operand.element->getBase());
    if (outer == nullptr || subscript_in(*outer->getBase()) != nullptr) {
      return false;
    }
    const bool k_is_last = depends_on(*operand.element->getIdx(), *result_.k.counted.counter);
    const clang::Expr& across = k_is_last ? *outer->getIdx() : *operand.element->getIdx();
    operand.place = placing(across);
    operand.tile_across = extent(*operand.tile, k_is_last ? 0 : 1);
    return operand.place != nullptr && operand.tile_across != nullptr &&
           !depends_on(across, *result_.k.counted.counter);
  }

  /// Also through const variables.
  static bool depends_on(const clang::Expr& expr, const clang::VarDecl& variable) {
    const std::vector<const clang::VarDecl*> mentioned = Mentions(expr).variables;
    return std::ranges::any_of(mentioned, [&](const clang::VarDecl* other) {
      const bool followed =
          other->isLocalVarDecl() && other->hasInit() && other->getType().isConstQualified();
      return other == &variable || (followed && depends_on(*other->getInit(), variable));
    });
  }

  /// The variable that differs from thread to thread; nullptr where there are several.
  const clang::VarDecl* placing(const clang::Expr& across) {
    Evaluator evaluator(kernel_);
    const clang::VarDecl* found = nullptr;
    for (const clang::VarDecl* variable : Mentions(across).variables) {
      const bool local = std::ranges::find(block_.locals, variable) != block_.locals.end();
      const auto values =
          local ? thread_values(evaluator, block_, *variable->getInit()) : std::nullopt;
      if (values && std::ranges::adjacent_find(*values, std::not_equal_to<>()) != values->end()) {
        if (found != nullptr && found != variable) {
          return nullptr;
        }
        found = variable;
      }
    }
    return found;
  }

  /// Of one dimension as it is written, without the pad in extent + pad.
  static const clang::Expr* extent(const clang::DeclaratorDecl& tile, int dimension) {
    auto type = tile.getTypeSourceInfo()->getTypeLoc().getAs<clang::ArrayTypeLoc>();
    if (dimension == 1 && !type.isNull()) {
      type = type.getElementLoc().getAs<clang::ArrayTypeLoc>();
    }
    const clang::Expr* size = type.isNull() ? nullptr : type.getSizeExpr();
    if (size == nullptr) {
      return nullptr;
    }
    std::vector<const clang::Expr*> summands;
    add_summands(*size, summands);
    return summands.front();
  }

  bool take_load(WarpOperand& operand) const {
    for (const StagePart& part : result_.stages->body) {
      const bool fills = std::ranges::any_of(part.accesses.list, [&](const MemoryAccess& access) {
        return access.writes && is_tile(operand, access.memory);
      });
      const bool others = std::ranges::any_of(part.accesses.list, [&](const MemoryAccess& access) {
        return access.writes && access.memory.space == Space::Shared &&
               !is_tile(operand, access.memory);
      });
      if (fills && (part.role != Role::Load || others || operand.load != nullptr)) {
        return false;
      }
      operand.load = fills ? part.statement : operand.load;
    }
    return operand.load != nullptr;
  }

  static bool is_tile(const WarpOperand& operand, const Memory& memory) {
    return operand.tile == (memory.member != nullptr
                                ? static_cast<const clang::DeclaratorDecl*>(memory.member)
                                : memory.variable);
  }

  bool take_matrix(WarpOperand& operand) {
    const Mentions load(*operand.load);
    std::optional<ElementIndex> index;
    for (const clang::ArraySubscriptExpr* element : load.elements) {
      const Memory memory = memory_of(*element);
      if (memory.space != Space::Global) {
        continue;
      }
      const auto* matrix = dyn_cast_or_null<clang::ParmVarDecl>(memory.variable);
      if (matrix == nullptr || (operand.matrix != nullptr && matrix != operand.matrix)) {
        return false;
      }
      operand.matrix = matrix;
      index = index ? index : element_index(kernel_, *element->getIdx());
    }
    return index && take_coordinates(operand, *index) && take_size(operand, load);
  }

  bool take_coordinates(WarpOperand& operand, const ElementIndex& index) {
    const clang::VarDecl& k0 = *result_.tiles.counter;
    operand.pitch = index.width;
    operand.k_along_rows = std::ranges::any_of(
        index.column, [&](const clang::Expr* summand) { return depends_on(*summand, k0); });
    std::vector<const clang::Expr*> across;
    for (const clang::Expr* part :
         operand.k_along_rows ? std::vector<const clang::Expr*>{index.row} : index.column) {
      add_summands(*part, across);
    }
    Uniformity uniformity(kernel_);
    std::ranges::copy_if(across, std::back_inserter(operand.block_across),
                         [&](const clang::Expr* summand) { return uniformity.holds(*summand); });
    return !operand.block_across.empty() && depends_on(*index.row, k0) == !operand.k_along_rows;
  }

  /// What the load compares its coordinates with: nothing else says how large the matrix is.
  bool take_size(WarpOperand& operand, const Mentions& load) const {
    for (const clang::BinaryOperator* comparison : load.comparisons) {
      const auto* limit = dyn_cast_or_null<clang::ParmVarDecl>(variable_of(comparison->getRHS()));
      if (limit == nullptr || depends_on(*comparison->getLHS(), *result_.tiles.counter)) {
        continue;
      }
      if (operand.across != nullptr && limit != operand.across) {
        return false;
      }
      operand.across = limit;
    }
    return operand.across != nullptr;
  }

  const Kernel& kernel_;
  const ThreadBlock& block_;
  const std::vector<DeviceLoop> loops_ = device_loops(kernel_);
  WarpOperands result_;
};

} // namespace

std::optional<WarpOperands> warp_operands(const Kernel& kernel, const ThreadBlock& block,
                                          const std::vector<Stages>& stages) {
  return OperandFinder(kernel, block).find(stages);
}

} // namespace evo
