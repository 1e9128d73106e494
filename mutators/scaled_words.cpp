#include "mutators/scaled_words.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/scale_texts.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// The array that the registers of a product are stored back to: sum[i][j] = tile[0].
class SumFinder : public SyntaxVisitor {
public:
  explicit SumFinder(const clang::Stmt& code) { TraverseStmt(const_cast<clang::Stmt*>(&code)); }

  bool VisitBinaryOperator(clang::BinaryOperator* assignment) override {
    const auto* to = dyn_cast<clang::ArraySubscriptExpr>(assignment->getLHS());
    const auto* row =
        to == nullptr ? nullptr
                      : dyn_cast<clang::ArraySubscriptExpr>(to->getBase()->IgnoreParenImpCasts());
    if (assignment->isAssignmentOp() && row != nullptr &&
        clang::isa<clang::ArraySubscriptExpr>(assignment->getRHS()->IgnoreParenImpCasts())) {
      sum = variable_of(row->getBase());
    }
    return true;
  }
  const clang::VarDecl* sum = nullptr;
};

std::int64_t rows_of_block(const WarpOperand& operand) {
  return operand.k_along_rows ? 8 : 16;
}

} // namespace

const DeviceLoop* loop_over_tiles(const Kernel& kernel, const WarpOperands& operands,
                                  std::int64_t depth) {
  const auto& around = operands.products.front().tiles;
  if (!around || operands.products.size() != 1 ||
      constant_value(kernel, *around->counted.start) != 0 ||
      variable_of(around->counted.limit) != operands.depth ||
      constant_value(kernel, *operands.left.tile_k) != around->counted.step_value ||
      around->counted.step_value % depth != 0) {
    return nullptr;
  }
  const auto is_plain = [&](const WarpOperand& operand) {
    return operand.copies.size() == 1 && operand.copies.front().way == TileCopy::Way::Direct &&
           operand.stages == nullptr && operand.copies.front().k.size() == 1 &&
           variable_of(operand.copies.front().k.front()) == around->counted.counter;
  };
  return is_plain(operands.left) && is_plain(operands.right) ? &*around : nullptr;
}

Texts ScaledWords::scaling(const std::string& scale, const std::string& unit) {
  Texts texts{{"scale_of", helpers_.use(scale)}, {"unit", helpers_.use(unit)}};
  for (const char* name : {"magnitudes", "largest", "units", "scale", "first", "k_end"}) {
    texts[name] = names_.fresh(std::string("split_") + name);
  }
  return texts;
}

Texts ScaledWords::places() const {
  const WarpRead& left = product().left;
  const WarpRead& right = product().right;
  Texts texts = texts_;
  add_side(texts, "left_", operands_.left);
  add_side(texts, "right_", operands_.right);
  texts["sum"] = present(SumFinder(*product().k.counted.loop).sum).getNameAsString();
  texts["i"] = left.accumulators.counted.counter->getNameAsString();
  texts["j"] = right.accumulators.counted.counter->getNameAsString();
  texts["rows"] = text(*left.accumulators.counted.limit, Binding::Product);
  texts["columns"] = text(*right.accumulators.counted.limit, Binding::Product);
  return texts;
}

void ScaledWords::add_side(Texts& texts, const std::string& side,
                           const WarpOperand& operand) const {
  const Texts& known = operand_texts_.at(&operand);
  texts[side + "tile"] = known.at("tile");
  texts[side + "group"] = known.at("group");
  texts[side + "units"] = units(operand);
  texts[side + "across"] = sum(operand.copies.front().across);
  texts[side + "place"] = operand.place->getNameAsString();
}

void ScaledWords::write_results(std::string_view code, const Texts& texts) {
  insert(checked(span_of(kernel_, *tiles_->counted.loop)).end, filled_in(code, texts));
  insert(span(operands_.function->parameters().back()->getSourceRange()).end,
         ", const float *" + units(operands_.left) + ", const float *" + units(operands_.right));
  insert(span(launch_.arguments.back()->getSourceRange()).end,
         ", " + units(operands_.left) + ", " + units(operands_.right));
}

/// What takes each row back.
std::string ScaledWords::units(const WarpOperand& operand) const {
  return operand.tile->getNameAsString() + "_units";
}

std::string ScaledWords::rounded(const WarpOperand& operand, Texts sizes) const {
  const Texts& known = operand_texts_.at(&operand);
  sizes.insert(known.begin(), known.end());
  return filled_in("$round_up($across, $tile_across)", sizes);
}

// ---- the passes ---------------------------------------------------------------------------------

std::string ScaledWords::pass(const WarpOperand& operand, Texts texts) const {
  texts["coordinates"] =
      filled_in(operand.k_along_rows ? scale_texts::along_rows : scale_texts::along_columns, texts);
  texts["block_rows"] = number(rows_of_block(operand));
  texts["stores"] = filled_in(stores(), texts);
  return filled_in(scale_texts::pass_text, texts);
}

std::string ScaledWords::grid(const WarpOperand& operand) const {
  const std::int64_t rows = rows_of_block(operand);
  return "($round_up($across, $tile_across) + " + number(rows - 1) + ") / " + number(rows);
}

std::string ScaledWords::threads(const WarpOperand& operand) const {
  return number(32 * rows_of_block(operand));
}

std::string ScaledWords::further_bytes(const Texts& left, const Texts& right) const {
  if (tiles_ == nullptr) {
    return "";
  }
  return " + sizeof(float) * (" + rounded(operands_.left, left) + " + " +
         rounded(operands_.right, right) + ")";
}

std::string ScaledWords::further_regions(const Texts& left, const Texts& right) const {
  if (tiles_ == nullptr) {
    return "";
  }
  return "float *" + units(operands_.left) + " = reinterpret_cast<float *>(" +
         words(operands_.right) + " + " + bytes_in(right, operands_.right) +
         " / sizeof(unsigned));\nfloat *" + units(operands_.right) + " = " + units(operands_.left) +
         " + " + rounded(operands_.left, left) + ";\n";
}

std::string ScaledWords::further_arguments(const WarpOperand& operand) const {
  if (tiles_ == nullptr) {
    return "";
  }
  return ", " + units(operand);
}

} // namespace evo
