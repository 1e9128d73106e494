// A kernel whose tensor cores multiply words that passes leave in the workspace before its launch,
// in the order in which ldmatrix takes them (see split_operands.cpp for the order).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <clang/Basic/SourceLocation.h>

#include "mutators/analysis/dependence_graph.hpp"
#include "mutators/filled_in.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/kernel.hpp"
#include "mutators/leaf_helpers.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/removal.hpp"
#include "mutators/render.hpp"
#include "mutators/rewrite.hpp"
#include "mutators/thread_block.hpp"
#include "mutators/warp_operands.hpp"

namespace evo {

/// One kernel's rewrite: tiles, copies, workspace and launches. What words hold, and how they are
/// multiplied, is for derived classes to say; they throw CannotWrite where something cannot be
/// written.
class OperandWords {
public:
  OperandWords(const Kernel& kernel, const DependenceGraph& graph, const WarpOperands& operands,
               const ThreadBlock& block, const Launch& launch)
      : kernel_(kernel), graph_(graph), operands_(operands), block_(block), launch_(launch),
        helpers_(kernel), names_(kernel), removal_(kernel) {}
  virtual ~OperandWords() = default;

  /// nullopt where something cannot be written.
  std::optional<std::vector<Edit>> edits();

protected:
  /// What words look like: $depth of a panel along k, $chunk of it in 16 bytes, $panel_words that a
  /// row has in a panel, also as a factor ($row_words); and names of leaf helpers.
  virtual Texts form() = 0;
  /// The code that reads the tiles and multiplies.
  virtual void write_products() = 0;
  /// Where a copy begins in the matrix, in panels; `k` is where the tile begins.
  virtual std::string first_panel(const WarpOperand& operand, const std::string& k) const;
  /// The kernel that fills an operand's words; `names` are what both are made of.
  virtual std::string pass(const WarpOperand& operand, Texts names) const = 0;
  virtual std::string grid(const WarpOperand& operand) const = 0;
  virtual std::string threads(const WarpOperand& operand) const = 0;
  /// How many bytes its words take, in $across and $limit.
  virtual std::string bytes() const = 0;
  /// What the workspace holds behind the words, as a summand, and where; sizes as the workspace
  /// function and as the entry names them.
  virtual std::string further_bytes(const Texts&, const Texts&) const { return ""; }
  virtual std::string further_regions(const Texts&, const Texts&) const { return ""; }
  /// What a pass is given behind the words: ", units".
  virtual std::string further_arguments(const WarpOperand&) const { return ""; }

  /// Leaf helpers that go unless other code calls them.
  virtual std::vector<std::string_view> replaced_helpers() const { return {}; }

  static std::string number(std::int64_t value) { return std::to_string(value); }
  Span span(clang::SourceRange range) const { return checked(span_of(kernel_, range)); }
  void replace(Span span, std::string text) {
    edits_.push_back({span.begin, span.length(), std::move(text)});
  }
  /// The same, so that constants that only the replaced code names go too.
  void replace_code(Span span, std::string text) {
    removal_.replaced(span);
    replace(span, std::move(text));
  }
  void insert(unsigned offset, std::string text) { edits_.push_back({offset, 0, std::move(text)}); }
  std::string text(const clang::Expr& expr, Binding binding) const {
    const auto found = operand(kernel_, expr, binding);
    return found ? *found : throw CannotWrite{};
  }
  /// [stage] of one of several tiles.
  std::string stage(const clang::Expr* index) const {
    return index == nullptr ? "" : "[" + text(*index, Binding::Sum) + "]";
  }
  std::string sum(const std::vector<const clang::Expr*>& summands) const;
  /// The integers that a pass depends on, as the kernel has them.
  std::vector<const clang::ParmVarDecl*> integers(const WarpOperand& operand) const;
  std::string words(const WarpOperand& operand) const {
    return operand_texts_.at(&operand).at("passed");
  }
  std::string bytes_in(Texts sizes, const WarpOperand& operand) const;
  const clang::Stmt& statement() const { return present(operands_.statement); }

  const Kernel& kernel_;
  const DependenceGraph& graph_;
  const WarpOperands& operands_;
  const ThreadBlock& block_;
  const Launch& launch_;
  LeafHelpers helpers_;
  Names names_;
  Texts texts_;
  std::map<const WarpOperand*, Texts> operand_texts_;
  std::string constants_; // at namespace scope, before the passes

private:
  void write();
  void remove_helpers();
  void write_operand(const WarpOperand& operand);
  void write_copy(const WarpOperand& operand, const TileCopy& copy, Texts texts);
  Span lines_of(const clang::Stmt& statement) const;
  std::string tile_text(const WarpOperand& operand) const;
  const clang::ArraySubscriptExpr& element(const WarpOperand& operand) const;
  void declare_tile(const WarpOperand& operand, const Texts& texts);
  void declare_places(const WarpOperand& operand, const Texts& texts);
  Texts pass_names();
  std::string pass_text(const WarpOperand& operand, Texts texts) const;
  std::string argument(const clang::ParmVarDecl& parameter) const;
  Texts sizes_at_launch(const WarpOperand& operand) const;
  Texts sizes_in_workspace(const WarpOperand& operand, const clang::FunctionDecl& workspace) const;
  void write_entry();
  void write_launches(const std::string& begin);
  std::string pass_launch(const WarpOperand& operand) const;

  Removal removal_;
  std::vector<Edit> edits_;
};

/// What has the product with the largest tile computed on tensor cores, in tiles of a multiple of
/// `depth` along k, by two parts of bf16, which nothing overflows.
std::vector<Gene> largest_product_on_tensor_cores(const Kernel& kernel, std::int64_t depth);

/// The only launch of a kernel; nullptr where there are several.
const Launch* only_launch(const DependenceGraph& graph, const clang::FunctionDecl& function);

} // namespace evo
