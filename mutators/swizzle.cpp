#include "mutators/swizzle.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

#include "mutators/names.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

constexpr std::int64_t most_groups = 8; // of four columns: all 32 banks

/// column ^ (row % groups * width): a permutation of each row, for both are powers of two and their
/// product divides its length.
struct Pattern {
  std::int64_t groups = 1;
  std::int64_t width = 1;

  std::string period() const { return std::to_string(groups * width); }
  std::string text(const std::string& row, const std::string& column) const {
    return column + " ^ (" + row + " % " + std::to_string(groups) +
           (width == 1 ? ")" : " * " + std::to_string(width) + ")");
  }
};

std::optional<Pattern> pattern_for(const TileAccesses& tile, std::int64_t columns) {
  for (const std::int64_t width : {4, 1}) {
    Pattern pattern{.groups = 1, .width = width};
    while (pattern.groups < most_groups && columns % (2 * pattern.groups * width) == 0) {
      pattern.groups *= 2;
    }
    if (pattern.groups > 1 && tile.aligned && width % tile.widest == 0) {
      return pattern;
    }
  }
  return std::nullopt;
}

bool calls_or_changes(const Kernel& kernel, const TileAccess& access) {
  return std::ranges::any_of(access.indices, [&](const clang::Expr* index) {
    return index->HasSideEffects(kernel.ast());
  });
}

} // namespace

std::optional<std::vector<Edit>> swizzled(const Kernel& kernel, const clang::FunctionDecl& function,
                                          const TileAccesses& tile,
                                          const std::optional<Padding>& padding) {
  const clang::Expr* extent = padding ? padding->extent : tile.written_extents.back();
  const auto pattern = pattern_for(tile, tile.extents.back() - (padding ? padding->value : 0));
  const auto columns = operand(kernel, *extent, Binding::Product);
  const auto before = offset_before(kernel, function);
  if (!pattern || !columns || !before ||
      std::ranges::any_of(tile.list, [&](const auto& a) { return calls_or_changes(kernel, a); })) {
    return std::nullopt;
  }
  Names names(kernel);
  const std::string name =
      names.fresh(function.getNameAsString() + "_" + tile.tile->getNameAsString() + "_column");
  const std::string in_row = names.fresh("tile_row");
  const std::string in_column = names.fresh("tile_column");
  std::vector<Edit> edits{{*before, 0,
                           "__device__ constexpr int " + name + "(int " + in_row + ", int " +
                               in_column + ") {\nstatic_assert(" + *columns + " % " +
                               pattern->period() + " == 0);\nreturn " +
                               pattern->text(in_row, in_column) + ";\n}\n\n"}};
  for (const TileAccess& access : tile.list) {
    const auto row = span_of(kernel, (*(access.indices.rbegin() + 1))->getSourceRange());
    const auto column = span_of(kernel, access.indices.back()->getSourceRange());
    if (!row || !column) {
      return std::nullopt;
    }
    edits.push_back({column->begin, 0, name + "(" + render(kernel, *row) + ", "});
    edits.push_back({column->end, 0, ")"});
  }
  sort_edits(edits);
  return edits;
}

} // namespace evo
