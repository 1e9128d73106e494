// Lays a shared tile out anew: its rows and columns change places, its rows are padded, or its
// columns are swizzled (swizzle.hpp).
//
//   before                              after "gemm/w transpose"
//   float w[block_m][block_k];          float w[block_k][block_m];
//   w[row][k] = W[...];                 w[k][row] = W[...];
//   sum += w[thread_row + i][k] * ...   sum += w[k][thread_row + i] * ...
//
//   before                              after "gemm/w pad 4"
//   float w[block_k][block_m];          constexpr int gemm_w_pad = 4;
//                                       float w[block_k][block_m + gemm_w_pad];
//
// What is added to the last extent and never touched is a padding, whoever wrote it: it can take
// another value, "pad 0" removes it, and it stays with the last extent when the tile is transposed.
// Further dimensions, such as stages, stay in front. The computation keeps its order and values, so
// results keep every bit.
//
// Precondition: the tile is reached by its name alone, with all of its subscripts, each within its
// own dimension, and every access is known (analysis/tile_accesses.hpp). A transposition needs
// accesses to single elements, their indices free of calls and effects; wide ones stay aligned and
// whole under the others. A block that grows stays within the shared memory of its launch and of
// the target, and every static_assert holds. Where a warp takes wide groups of one row at a time
// (operands that lie as ldmatrix loads them), another layout gains nothing: but "pad 0" is offered.
//
// Expected gain: fragments that lie side by side in a row can be loaded together; a padding moves
// rows to different banks, so that threads that go down a column meet no conflicts; a swizzle does
// so without more memory, for some arithmetic.
#include <algorithm>
#include <array>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/padding.hpp"
#include "mutators/analysis/stage_model.hpp"
#include "mutators/analysis/tile_accesses.hpp"
#include "mutators/analysis/tile_storage.hpp"
#include "mutators/constant_placement.hpp"
#include "mutators/edited.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"
#include "mutators/swizzle.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::array<std::int64_t, 4> amounts{0, 1, 4, 8};

/// A kernel's tile, and what can be done with it.
class TileRelayout {
public:
  /// `paddings`: of tiles before this one, by constants of their own.
  TileRelayout(const Kernel& kernel, const clang::FunctionDecl& function,
               const TileStorage& storage, const TileAccesses& tile,
               std::vector<const clang::VarDecl*> paddings)
      : kernel_(kernel), function_(function), storage_(storage), tile_(tile),
        paddings_(std::move(paddings)), padding_(find_padding(kernel, tile)) {}

  std::string name() const {
    return function_.getNameAsString() + "/" + tile_.tile->getNameAsString();
  }
  const std::optional<Padding>& padding() const { return padding_; }

  // nullopt where that is not legal.
  std::optional<std::vector<Edit>> transposed() const;
  std::optional<std::vector<Edit>> padded(std::int64_t amount) const;

private:
  std::int64_t rows() const { return tile_.extents[tile_.extents.size() - 2]; }
  std::int64_t columns() const { return tile_.extents.back() - amount(); } // without padding
  std::int64_t amount() const { return padding_ ? padding_->value : 0; }
  std::optional<std::string> text(const clang::Expr* expr) const;
  std::optional<std::vector<Edit>> if_legal(std::vector<Edit> edits, std::int64_t rows,
                                            std::int64_t row_elements) const;
  std::optional<std::vector<Edit>> by_new_constant(std::int64_t amount) const;
  std::optional<std::vector<Edit>> without_padding() const;
  std::optional<unsigned> offset_for_constant() const;

  const Kernel& kernel_;
  const clang::FunctionDecl& function_;
  const TileStorage& storage_;
  const TileAccesses& tile_;
  std::vector<const clang::VarDecl*> paddings_;
  std::optional<Padding> padding_;
};

std::optional<std::string> TileRelayout::text(const clang::Expr* expr) const {
  const auto span = span_of(kernel_, expr->getSourceRange());
  return span ? std::optional(render(kernel_, *span)) : std::nullopt;
}

/// Sorts the edits, which make rows of another length, if the block has room for them and
/// everything aligned stays so.
std::optional<std::vector<Edit>> TileRelayout::if_legal(std::vector<Edit> edits, std::int64_t rows,
                                                        std::int64_t row_elements) const {
  const clang::ASTContext& ast = kernel_.ast();
  const clang::QualType type = tile_.tile->getType();
  const std::int64_t unit = ast.getTypeSizeInChars(ast.getBaseElementType(type)).getQuantity();
  const std::int64_t matrices =
      ast.getTypeSizeInChars(type).getQuantity() / unit / (this->rows() * tile_.extents.back());
  const std::int64_t more =
      matrices * unit * (rows * row_elements - this->rows() * tile_.extents.back());
  const bool wide = std::ranges::any_of(tile_.list, &TileAccess::wide);
  sort_edits(edits);
  const bool legal =
      more % storage_.alignment == 0 && (!wide || row_elements * unit % storage_.alignment == 0) &&
      (more <= 0 || can_grow(kernel_, function_, storage_, more)) &&
      (more == 0 || find_rules(kernel_).assertions.empty() || edited(kernel_, edits).has_value());
  return legal ? std::optional(std::move(edits)) : std::nullopt;
}

std::optional<std::vector<Edit>> TileRelayout::transposed() const {
  std::vector<Edit> edits;
  const auto replace = [&](const clang::Expr* expr, const std::optional<std::string>& by) {
    const auto span = span_of(kernel_, expr->getSourceRange());
    if (span && by) {
      edits.push_back({span->begin, span->length(), *by});
    }
    return span && by;
  };
  const clang::Expr* last = tile_.written_extents.back();
  const clang::Expr* first = *(tile_.written_extents.rbegin() + 1);
  const bool exchanged =
      replace(first, text(padding_ ? padding_->extent : last)) &&
      (padding_ ? replace(padding_->extent, operand(kernel_, *first, Binding::Sum))
                : replace(last, text(first)));
  if (!exchanged) {
    return std::nullopt;
  }
  for (const TileAccess& access : tile_.list) {
    const clang::Expr* column = access.indices.back();
    const clang::Expr* row = *(access.indices.rbegin() + 1);
    if (access.wide || row->HasSideEffects(kernel_.ast()) ||
        column->HasSideEffects(kernel_.ast()) || !replace(row, text(column)) ||
        !replace(column, text(row))) {
      return std::nullopt;
    }
  }
  return if_legal(std::move(edits), columns(), rows() + amount());
}

std::optional<std::vector<Edit>> TileRelayout::padded(std::int64_t amount) const {
  if (amount == this->amount()) {
    return std::nullopt;
  }
  std::optional<std::vector<Edit>> edits;
  if (amount == 0) {
    edits = without_padding();
  } else if (padding_ && padding_->constant) {
    const auto edit = set_constant(kernel_, *padding_->constant, amount);
    edits = edit ? std::optional(std::vector{*edit}) : std::nullopt;
  } else {
    edits = by_new_constant(amount);
  }
  return edits ? if_legal(std::move(*edits), rows(), columns() + amount) : std::nullopt;
}

std::optional<std::vector<Edit>> TileRelayout::without_padding() const {
  const auto extent = span_of(kernel_, padding_->extent->getSourceRange());
  const auto written = span_of(kernel_, padding_->amount->getSourceRange());
  if (!extent || !written) {
    return std::nullopt;
  }
  std::vector<Edit> edits{{extent->end, written->end - extent->end, ""}};
  const auto lines =
      padding_->constant ? lines_of(kernel_, *padding_->constant->declaration) : std::nullopt;
  if (lines) {
    edits.push_back({lines->begin, lines->length(), ""});
  }
  return edits;
}

std::optional<std::vector<Edit>> TileRelayout::by_new_constant(std::int64_t amount) const {
  const clang::Expr* last = tile_.written_extents.back();
  const clang::Expr* replaced = padding_ ? padding_->amount : last;
  const auto span = span_of(kernel_, replaced->getSourceRange());
  const auto extent = operand(kernel_, *last, Binding::Sum);
  const auto offset = offset_for_constant();
  if (!span || !extent || !offset) {
    return std::nullopt;
  }
  const std::string constant = Names(kernel_).fresh(function_.getNameAsString() + "_" +
                                                    tile_.tile->getNameAsString() + "_pad");
  return std::vector<Edit>{
      {*offset, 0, "constexpr int " + constant + " = " + std::to_string(amount) + ";\n"},
      {span->begin, span->length(), padding_ ? constant : *extent + " + " + constant}};
}

/// Behind what the extents mention and the paddings of earlier tiles, so that the order of rewrites
/// does not matter; before the tile where that is not possible.
std::optional<unsigned> TileRelayout::offset_for_constant() const {
  const clang::Decl& user =
      storage_.record == nullptr ? static_cast<const clang::Decl&>(function_) : *storage_.record;
  std::vector<const clang::VarDecl*> mentioned = paddings_;
  std::for_each(tile_.written_extents.rbegin(), tile_.written_extents.rbegin() + 2,
                [&](const clang::Expr* extent) {
                  std::ranges::copy(mentioned_constants(*extent), std::back_inserter(mentioned));
                });
  return offset_behind(kernel_, mentioned, user);
}

class RelayoutTile : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "relayout_tile",
        .summary = "transposes, pads or swizzles a shared tile: fragments in a row, fewer bank "
                   "conflicts",
        .before = "float w[block_m][block_k];\n... w[row][k] ...",
        .after = "float w[block_k][block_m + gemm_w_pad];\n... w[k][row] ...",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    for (const Stages& stages : find_stages(kernel)) {
      if (const auto storage = find_tile_storage(kernel, stages)) {
        propose(kernel, *stages.kernel, *storage, result);
      }
    }
    return result;
  }

private:
  /// Between rows, which alone change their banks.
  static bool may_have_conflicts(const TileAccesses& tile) {
    return !tile.a_row_per_warp || !std::ranges::all_of(tile.list, &TileAccess::wide);
  }

  static void propose(const Kernel& kernel, const clang::FunctionDecl& function,
                      const TileStorage& storage, std::vector<Rewrite>& result) {
    std::vector<const clang::VarDecl*> paddings;
    const auto tiles = find_tile_accesses(kernel, function, storage);
    for (const TileAccesses& tile : tiles) {
      const TileRelayout relayout(kernel, function, storage, tile, paddings);
      const auto add = [&](const std::string& choice, std::optional<std::vector<Edit>> edits) {
        const std::string label = relayout.name() + choice;
        if (edits && std::ranges::count(result, label, &Rewrite::label) == 0) {
          result.push_back({label, std::move(*edits)});
        }
      };
      const bool gains = may_have_conflicts(tile);
      if (gains) {
        add(" transpose", relayout.transposed());
      }
      for (const std::int64_t amount : amounts) {
        if (gains || amount == 0) {
          add(" pad " + std::to_string(amount), relayout.padded(amount));
        }
      }
      if (gains) {
        add(" swizzle", swizzled(kernel, function, tile, relayout.padding()));
      }
      if (relayout.padding() && relayout.padding()->constant) {
        paddings.push_back(relayout.padding()->constant->declaration);
      }
    }
  }
};

} // namespace

const Mutator& relayout_tile() {
  static const RelayoutTile mutator;
  return mutator;
}

} // namespace evo
