#include "mutators/warp_operands.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ParentMapContext.h>
#include <clang/AST/TypeLoc.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/async_copies.hpp"
#include "mutators/analysis/exchange.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/analysis/warp_products.hpp"
#include "mutators/leaf_helpers.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

/// What a piece of code mentions, in source order.
class Mentions : public SyntaxVisitor {
public:
  explicit Mentions(const clang::Stmt& code) { TraverseStmt(const_cast<clang::Stmt*>(&code)); }

  bool VisitCallExpr(clang::CallExpr* call) override {
    if (multiplies_matrices(*call)) {
      products.push_back(call);
    }
    copies = copies || async_copy(call) != nullptr;
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
  bool copies = false; // asynchronously
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

const clang::DeclaratorDecl* declaration_of(const Memory& memory) {
  return memory.member != nullptr ? static_cast<const clang::DeclaratorDecl*>(memory.member)
                                  : memory.variable;
}

/// Also by what local variables begin with.
bool depends_on(const clang::Expr& expr,
                const std::function<bool(const clang::VarDecl&)>& matches) {
  const std::vector<const clang::VarDecl*> mentioned = Mentions(expr).variables;
  return std::ranges::any_of(mentioned, [&](const clang::VarDecl* other) {
    return matches(*other) ||
           (other->isLocalVarDecl() && other->hasInit() && depends_on(*other->getInit(), matches));
  });
}

bool depends_on(const clang::Expr& expr, const clang::VarDecl& variable) {
  return depends_on(expr, [&](const clang::VarDecl& other) { return &other == &variable; });
}

bool depends_on_block(const clang::Expr& expr) {
  return depends_on(expr,
                    [](const clang::VarDecl& other) { return other.getName() == "blockIdx"; });
}

/// The statements that do one thing and nothing else to memory, the outermost ones.
class WarpOperandsFinder {
public:
  WarpOperandsFinder(std::function<bool(const MemoryAccess&)> wanted,
                     std::function<bool(const MemoryAccess&)> allowed)
      : wanted_(std::move(wanted)), allowed_(std::move(allowed)) {}

  std::vector<const clang::Stmt*> in(const clang::Stmt& code) {
    visit(code);
    return std::move(found_);
  }

private:
  void visit(const clang::Stmt& code) {
    const Accesses accesses = accesses_of(code);
    if (std::ranges::none_of(accesses.list, wanted_)) {
      return;
    }
    const bool groups = isa<clang::CompoundStmt, clang::IfStmt>(code);
    if (!groups && accesses.opaque == nullptr && accesses.barriers.empty() &&
        std::ranges::all_of(accesses.list, allowed_)) {
      found_.push_back(&code);
      return;
    }
    for (const clang::Stmt* child : code.children()) {
      if (child != nullptr) {
        visit(*child);
      }
    }
  }

  std::function<bool(const MemoryAccess&)> wanted_;
  std::function<bool(const MemoryAccess&)> allowed_;
  std::vector<const clang::Stmt*> found_;
};

class WarpOperandFinder {
public:
  WarpOperandFinder(const Kernel& kernel, const ThreadBlock& block)
      : kernel_(kernel), block_(block) {}

  std::optional<WarpOperands> find() {
    result_.function = block_.function;
    const std::vector<const clang::CallExpr*> products = Mentions(body()).products;
    const bool found =
        !products.empty() && take_lane() &&
        std::ranges::all_of(
            products, [&](const clang::CallExpr* product) { return take_product(*product); }) &&
        take_copies(result_.left) && take_copies(result_.right) &&
        result_.left.matrix != result_.right.matrix && result_.left.tile != result_.right.tile &&
        result_.depth != nullptr && sums_to_the_end() && take_statement();
    return found ? std::optional(std::move(result_)) : std::nullopt;
  }

private:
  const clang::Stmt& body() const { return *block_.function->getBody(); }

  /// Keeps what is found first; whatever else is found must be the same.
  template <class T> static bool take_one(const T*& known, const T* found) {
    known = known == nullptr ? found : known;
    return found != nullptr && known == found;
  }

  bool take_lane() {
    result_.lane = lane_number(kernel_, block_);
    return result_.lane != nullptr;
  }

  // ---- what a product reads ---------------------------------------------------------------------

  bool take_product(const clang::CallExpr& product) {
    const LeafHelpers helpers(kernel_);
    const TensorType* found = nullptr;
    for (const TensorType& type : tensor_types()) {
      if (helpers.find(type.multiply) == product.getDirectCallee()->getDefinition()) {
        found = &type;
      }
    }
    WarpMultiply multiply;
    if (!take_one(result_.type, found) || !take_one(result_.parts, count_of_parts(product))) {
      return false;
    }
    for (const DeviceLoop& loop : loops_) {
      if (loop.function == block_.function && loop.counted.step_value == result_.type->depth &&
          contains(*loop.counted.loop->getBody(), product)) {
        multiply.k = loop;
      }
    }
    for (const DeviceLoop& loop : loops_) {
      if (multiply.k.function != nullptr &&
          contains(*loop.counted.loop->getBody(), *multiply.k.counted.loop)) {
        multiply.tiles = loop;
      }
    }
    if (multiply.k.function == nullptr ||
        !take(multiply, multiply.left, result_.left, *product.getArg(1)) ||
        !take(multiply, multiply.right, result_.right, *product.getArg(2))) {
      return false;
    }
    result_.products.push_back(std::move(multiply));
    return true;
  }

  bool take(const WarpMultiply& multiply, WarpRead& read, WarpOperand& operand,
            const clang::Expr& argument) {
    const auto* fragment = subscript_in(argument);
    const clang::VarDecl* registers = fragment == nullptr ? nullptr : base_of(*fragment);
    read.registers = registers;
    return registers != nullptr && take_registers(multiply, read, *registers) &&
           take_tile(multiply, read, operand);
  }

  bool take_registers(const WarpMultiply& multiply, WarpRead& read,
                      const clang::VarDecl& registers) {
    for (const clang::BinaryOperator* assignment :
         Mentions(*multiply.k.counted.loop->getBody()).assignments) {
      const auto* slot = subscript_in(*assignment->getLHS());
      const auto* part = slot == nullptr ? nullptr : subscript_in(*slot->getBase());
      if (part == nullptr || base_of(*part) != &registers) {
        continue;
      }
      const clang::VarDecl* counter = variable_of(slot->getIdx());
      read.part = variable_of(part->getIdx());
      read.part_registers = part;
      const auto counted = counter == nullptr ? std::nullopt : loop_of_counter(kernel_, *counter);
      const DeviceLoop* loop = counted ? find_loop(loops_, *counted->loop) : nullptr;
      if (loop == nullptr || read.part == nullptr || read.slots.function != nullptr) {
        return false;
      }
      read.slots = *loop;
    }
    return read.slots.function != nullptr && take_accumulators(multiply, read);
  }

  bool take_accumulators(const WarpMultiply& multiply, WarpRead& read) const {
    for (const DeviceLoop& loop : loops_) {
      if (loop.counted.step_value == 2 &&
          contains(*multiply.k.counted.loop->getBody(), *loop.counted.loop) &&
          contains(*loop.counted.loop->getBody(), *read.slots.counted.loop)) {
        read.accumulators = loop;
      }
    }
    return read.accumulators.function != nullptr;
  }

  bool take_tile(const WarpMultiply& multiply, WarpRead& read, WarpOperand& operand) {
    for (const clang::ArraySubscriptExpr* element :
         Mentions(*read.slots.counted.loop->getBody()).elements) {
      if (read.element == nullptr && memory_of(*element).space == Space::Shared) {
        read.element = element; // the outermost subscript comes first
      }
    }
    const std::vector<const clang::Expr*> indices = indices_of(read.element);
    if (indices.size() != 2 && indices.size() != 3) {
      return false;
    }
    const clang::VarDecl& k = *multiply.k.counted.counter;
    const bool k_is_last = depends_on(*indices.back(), k);
    const clang::Expr& across = *indices[indices.size() - (k_is_last ? 2 : 1)];
    if (depends_on(across, k) ||
        !take_one(operand.tile, declaration_of(memory_of(*read.element))) ||
        !take_one(operand.place, placing_local(kernel_, block_, across))) {
      return false;
    }
    const int staged = indices.size() == 3 ? 1 : 0;
    read.stage = staged == 1 ? indices.front() : nullptr;
    operand.stages = staged == 1 ? extent(*operand.tile, 0) : nullptr;
    return take_one(operand.tile_across, extent(*operand.tile, staged + (k_is_last ? 0 : 1))) &&
           take_one(operand.tile_k, extent(*operand.tile, staged + (k_is_last ? 1 : 0)));
  }

  /// Of array[a][b], a and b.
  static std::vector<const clang::Expr*> indices_of(const clang::ArraySubscriptExpr* element) {
    std::vector<const clang::Expr*> result;
    for (; element != nullptr; element = subscript_in(*element->getBase())) {
      result.insert(result.begin(), element->getIdx());
    }
    return result;
  }

  /// Of one dimension as it is written, without the pad in extent + pad.
  static const clang::Expr* extent(const clang::DeclaratorDecl& tile, std::size_t dimension) {
    const std::vector<const clang::Expr*> extents = written_extents(tile);
    if (dimension >= extents.size() || extents[dimension] == nullptr) {
      return nullptr;
    }
    std::vector<const clang::Expr*> summands;
    add_summands(*extents[dimension], summands);
    return summands.front();
  }

  // ---- what fills the tiles ---------------------------------------------------------------------

  bool take_copies(WarpOperand& operand) {
    const auto fills = [&](const MemoryAccess& access) {
      return access.writes && declaration_of(access.memory) == operand.tile;
    };
    for (const clang::Stmt* statement :
         WarpOperandsFinder(fills, [&](const MemoryAccess& access) {
           return fills(access) || access.memory.space == Space::Register ||
                  (access.memory.space == Space::Global && !access.writes);
         }).in(body())) {
      if (!take_copy(operand, *statement)) {
        return false;
      }
    }
    return operand.across != nullptr;
  }

  bool take_copy(WarpOperand& operand, const clang::Stmt& statement) {
    const Mentions mentions(statement);
    TileCopy copy{.statement = &statement, .k = {}, .across = {}};
    const clang::VarDecl* registers = nullptr;
    bool reads_matrix = false;
    for (const clang::ArraySubscriptExpr* element : mentions.elements) {
      const Memory memory = memory_of(*element);
      const auto indices = indices_of(element);
      if (memory.space == Space::Shared && operand.stages != nullptr && indices.size() == 3) {
        copy.stage = indices.front();
      }
      reads_matrix |= memory.space == Space::Global;
      registers = memory.space == Space::Register ? memory.variable : registers;
    }
    if ((copy.stage == nullptr) != (operand.stages == nullptr)) {
      return false;
    }
    if (reads_matrix) {
      copy.way = mentions.copies ? TileCopy::Way::Async : TileCopy::Way::Direct;
      return take_matrix(operand, std::move(copy));
    }
    copy.way = TileCopy::Way::FromRegisters;
    copy.registers = registers;
    operand.copies.push_back(std::move(copy));
    return registers != nullptr && take_registers_filled(operand, *registers);
  }

  bool take_registers_filled(WarpOperand& operand, const clang::VarDecl& registers) {
    const auto fills = [&](const MemoryAccess& access) {
      return access.writes && access.memory.variable == &registers && access.source &&
             access.source->space == Space::Global;
    };
    const auto found = WarpOperandsFinder(fills, [](const MemoryAccess& access) {
                         return access.memory.space == Space::Register ||
                                (access.memory.space == Space::Global && !access.writes);
                       }).in(body());
    return !found.empty() && std::ranges::all_of(found, [&](const clang::Stmt* statement) {
      return take_matrix(operand, {.statement = statement,
                                   .way = TileCopy::Way::ToRegisters,
                                   .registers = &registers,
                                   .k = {},
                                   .across = {}});
    });
  }

  bool take_matrix(WarpOperand& operand, TileCopy copy) {
    const Mentions mentions(*copy.statement);
    std::optional<ElementIndex> index;
    for (const clang::ArraySubscriptExpr* element : mentions.elements) {
      const Memory memory = memory_of(*element);
      if (memory.space != Space::Global) {
        continue;
      }
      if (!take_one(operand.matrix, dyn_cast_or_null<clang::ParmVarDecl>(memory.variable))) {
        return false;
      }
      index = index ? index : element_index(kernel_, *element->getIdx());
    }
    if (!index || !take_coordinates(operand, copy, *index) || !take_sizes(operand, mentions)) {
      return false;
    }
    operand.copies.push_back(std::move(copy));
    return true;
  }

  /// Across the matrix a block has its own place, along k all have the same.
  bool take_coordinates(WarpOperand& operand, TileCopy& copy, const ElementIndex& index) {
    std::vector<const clang::Expr*> row;
    std::vector<const clang::Expr*> column;
    add_uniform(*index.row, row);
    for (const clang::Expr* part : index.column) {
      add_uniform(*part, column);
    }
    const auto is_across = [](const std::vector<const clang::Expr*>& summands) {
      return std::ranges::any_of(
          summands, [](const clang::Expr* summand) { return depends_on_block(*summand); });
    };
    const bool k_along_rows = is_across(row);
    operand.k_along_rows = operand.pitch == nullptr ? k_along_rows : operand.k_along_rows;
    copy.across = k_along_rows ? row : column;
    copy.k = k_along_rows ? column : row;
    return take_one(operand.pitch, index.width) && operand.k_along_rows == k_along_rows &&
           !copy.k.empty() && is_across(copy.across) && !is_across(copy.k);
  }

  /// Summands that are the same in all threads of a block.
  void add_uniform(const clang::Expr& expr, std::vector<const clang::Expr*>& found) const {
    Uniformity uniformity(kernel_);
    const auto* sum = dyn_cast<clang::BinaryOperator>(&definition_of(expr));
    if (uniformity.holds(expr)) {
      found.push_back(&expr);
    } else if (sum != nullptr && sum->getOpcode() == clang::BO_Add) {
      add_uniform(*sum->getLHS(), found);
      add_uniform(*sum->getRHS(), found);
    }
  }

  /// What a copy compares its coordinates with: nothing else says how large the matrix is.
  bool take_sizes(WarpOperand& operand, const Mentions& copy) {
    return std::ranges::all_of(copy.comparisons, [&](const clang::BinaryOperator* comparison) {
      const auto* limit = dyn_cast_or_null<clang::ParmVarDecl>(variable_of(comparison->getRHS()));
      return limit == nullptr ||
             take_one(depends_on_block(*comparison->getLHS()) ? operand.across : result_.depth,
                      limit);
    });
  }

  // ---- the sum ----------------------------------------------------------------------------------

  /// Some loop over tiles ends with the matrices: from there on there are no words to read.
  bool sums_to_the_end() const {
    return std::ranges::any_of(result_.products, [&](const WarpMultiply& product) {
      return product.tiles && depends_on(*product.tiles->counted.limit, *result_.depth);
    });
  }

  /// In the braces where the place is known.
  bool take_statement() {
    const auto definitions = kernel_.ast().getParents(*result_.left.place);
    const auto* definition = definitions.empty() ? nullptr : definitions[0].get<clang::DeclStmt>();
    const clang::Stmt* braces = definition == nullptr ? nullptr : parent_of(kernel_, *definition);
    if (braces == nullptr) {
      return false;
    }
    for (const clang::Stmt* statement : braces->children()) {
      const auto is_inside = [&](const TileCopy& copy) {
        return contains(*statement, *copy.statement);
      };
      if (result_.statement == nullptr && (std::ranges::any_of(result_.left.copies, is_inside) ||
                                           std::ranges::any_of(result_.right.copies, is_inside))) {
        result_.statement = statement;
      }
    }
    return result_.statement != nullptr;
  }

  const Kernel& kernel_;
  const ThreadBlock& block_;
  const std::vector<DeviceLoop> loops_ = device_loops(kernel_);
  WarpOperands result_;
};

} // namespace

std::optional<WarpOperands> warp_operands(const Kernel& kernel, const ThreadBlock& block) {
  return WarpOperandFinder(kernel, block).find();
}

} // namespace evo
