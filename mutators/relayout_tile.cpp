// Lays a shared tile out anew: its rows and columns change places.
//
//   before                              after "gemm/w transpose"
//   float w[block_m][block_k];          float w[block_k][block_m];
//   w[row][k] = W[...];                 w[k][row] = W[...];
//   sum += w[thread_row + i][k] * ...   sum += w[k][thread_row + i] * ...
//
// Further dimensions, such as stages, stay in front. The computation keeps its order and values, so
// results keep every bit.
//
// Precondition: the tile is reached by its name alone, element by element with all of its
// subscripts, each within its own dimension, and every access is known
// (analysis/tile_accesses.hpp).
//
// Expected gain: fragments that lie side by side in a row can be loaded together.
#include <optional>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/TypeLoc.h>

#include "mutators/analysis/stage_model.hpp"
#include "mutators/analysis/tile_accesses.hpp"
#include "mutators/analysis/tile_storage.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// The tile's extents as its declaration writes them; fewer where an alias stands for some.
std::vector<const clang::Expr*> written_extents(const clang::ValueDecl& tile) {
  std::vector<const clang::Expr*> extents;
  clang::TypeLoc type = dyn_cast<clang::DeclaratorDecl>(&tile)->getTypeSourceInfo()->getTypeLoc();
  for (auto array = type.getAs<clang::ArrayTypeLoc>(); array;
       array = array.getElementLoc().getAs<clang::ArrayTypeLoc>()) {
    extents.push_back(array.getSizeExpr());
  }
  return extents;
}

/// One tile and what can be done with it.
class Relayout {
public:
  Relayout(const Kernel& kernel, const TileAccesses& accesses)
      : kernel_(kernel), accesses_(accesses), extents_(written_extents(*accesses.tile)) {}

  std::optional<std::vector<Edit>> transposed() const;

private:
  bool exchange(const clang::Expr* first, const clang::Expr* second,
                std::vector<Edit>& edits) const;

  const Kernel& kernel_;
  const TileAccesses& accesses_;
  std::vector<const clang::Expr*> extents_;
};

/// Puts two expressions in each other's place; false where that cannot be written.
bool Relayout::exchange(const clang::Expr* first, const clang::Expr* second,
                        std::vector<Edit>& edits) const {
  const auto a = span_of(kernel_, first->getSourceRange());
  const auto b = span_of(kernel_, second->getSourceRange());
  if (a && b) {
    edits.push_back({a->begin, a->length(), render(kernel_, *b)});
    edits.push_back({b->begin, b->length(), render(kernel_, *a)});
  }
  return a && b;
}

std::optional<std::vector<Edit>> Relayout::transposed() const {
  std::vector<Edit> edits;
  if (extents_.size() != accesses_.extents.size() ||
      !exchange(extents_[extents_.size() - 2], extents_.back(), edits)) {
    return std::nullopt;
  }
  for (const TileAccess& access : accesses_.list) {
    const auto column = access.indices.rbegin();
    if (access.wide || !exchange(*(column + 1), *column, edits)) {
      return std::nullopt;
    }
  }
  sort_edits(edits);
  return edits;
}

class RelayoutTile : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "relayout_tile",
        .summary =
            "exchanges the rows and columns of a shared tile, so that fragments lie in a row",
        .before = "float w[block_m][block_k];",
        .after = "float w[block_k][block_m];",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    for (const Stages& stages : find_stages(kernel)) {
      const auto storage = find_tile_storage(kernel, stages);
      if (!storage) {
        continue;
      }
      for (const TileAccesses& accesses : find_tile_accesses(kernel, *stages.kernel, *storage)) {
        const std::string name =
            stages.kernel->getNameAsString() + "/" + accesses.tile->getNameAsString();
        if (auto edits = Relayout(kernel, accesses).transposed()) {
          result.push_back({name + " transpose", std::move(*edits)});
        }
      }
    }
    return result;
  }
};

} // namespace

const Mutator& relayout_tile() {
  static const RelayoutTile mutator;
  return mutator;
}

} // namespace evo
