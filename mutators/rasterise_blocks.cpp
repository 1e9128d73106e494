// Lets blocks that run together share operand tiles: walks through the grid in groups of rows.
//
//   before                                after "gemm/blocks raster 8"
//   const int block_row =                 const unsigned group_blocks = raster_m * gridDim.x;
//       blockIdx.y * block_m;             const unsigned block = blockIdx.y * gridDim.x +
//       blockIdx.x;
//   const int block_col =                 const unsigned group = block / group_blocks;
//       blockIdx.x * block_n;             const unsigned group_rows =
//                                             group < gridDim.y / raster_m ? raster_m
//                                                                          : gridDim.y % raster_m;
//                                         const unsigned tile_row =
//                                             group * raster_m + block % group_blocks % group_rows;
//                                         const unsigned tile_col =
//                                             block % group_blocks / group_rows;
//                                         const int block_row = tile_row * block_m;
//                                         const int block_col = tile_col * block_n;
//
// Blocks start row by row. With a group of 8 rows the first 8 blocks are a column of tiles, the
// next 8 the column beside it, and so on; the last group has the rows that are left. Applied again
// it changes the size of the groups, by its constant.
//
// Precondition: a kernel with a reduction loop, launched with several blocks along x and y, whose
// body alone mentions blockIdx, and not gridDim. Whatever the grid, tile_row and tile_col take each
// pair of coordinates once: a group begins at a multiple of group_blocks, and within it remainder
// and quotient by its rows tell the pair. Blocks may run in any order, so results keep every bit.
// The groups of a kernel that has some are found, and shown to be such a permutation under the new
// constant, by evaluating all blocks of several grids.
//
// Expected gain: as many blocks as the card runs at once need fewer different tiles of the one
// operand, and hardly more of the other, so more reads find them in L2. Nothing where both operands
// fit into it.
#include <algorithm>
#include <array>
#include <set>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/constants.hpp"
#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/grid_mentions.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/stage_model.hpp"
#include "mutators/constant_placement.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"
#include "mutators/thread_block.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::array<std::int64_t, 3> raster_heights{4, 8, 16};

std::string raster_label(const clang::FunctionDecl& function, std::int64_t height) {
  return function.getNameAsString() + "/blocks raster " + std::to_string(height);
}

/// The kernels with a reduction loop, each with a launch of several blocks along x and y.
std::vector<Launch> launches_on_planes(const Kernel& kernel) {
  constexpr std::int64_t several_tiles = 4096;
  const auto dims = find_dims(kernel);
  const auto launches =
      dims ? launches_at(kernel, *dims, several_tiles) : std::vector<EvaluatedLaunch>{};
  std::vector<Launch> result;
  for (const Stages& stages : find_stages(kernel)) {
    const auto plane = std::ranges::find_if(launches, [&](const EvaluatedLaunch& launch) {
      return launch.launch.kernel == stages.kernel && launch.grid.x > 1 && launch.grid.y > 1;
    });
    if (plane != launches.end() && (result.empty() || result.back().kernel != stages.kernel)) {
      result.push_back(plane->launch);
    }
  }
  return result;
}

/// The edits of one kernel's first groups, but for the height in their constant.
class Rasterisation {
public:
  Rasterisation(const Kernel& kernel, const Launch& launch)
      : kernel_(kernel), launch_(launch), mentions_(grid_mentions(*launch.kernel)) {}

  std::vector<Rewrite> rewrites() const {
    if (mentions_.block == nullptr || mentions_.grid || !mentions_.only_by_component() ||
        !only_kernels_ask(kernel_, *mentions_.block)) {
      return {};
    }
    std::vector<Rewrite> result;
    for (const std::int64_t height : raster_heights) {
      if (auto edits = edits_with(height)) {
        result.push_back({raster_label(*launch_.kernel, height), std::move(*edits)});
      }
    }
    return result;
  }

private:
  std::optional<std::vector<Edit>> edits_with(std::int64_t height) const {
    Names names(kernel_);
    const std::string rows = names.fresh(launch_.kernel->getNameAsString() + "_raster_m");
    const std::string row = names.fresh("tile_row");
    const std::string column = names.fresh("tile_col");
    auto edits = with_coordinates(row, column);
    const auto constants =
        offset_behind(kernel_, mentioned_constants(*launch_.grid), *launch_.kernel);
    const auto body = begin_of_first_use(kernel_, *launch_.kernel, *mentions_.block);
    if (!edits || !constants || !body) {
      return std::nullopt;
    }
    const std::string group_blocks = names.fresh("group_blocks");
    const std::string block = names.fresh("block");
    const std::string group = names.fresh("group");
    const std::string group_rows = names.fresh("group_rows");
    edits->push_back(
        {*constants, 0, "constexpr int " + rows + " = " + std::to_string(height) + ";\n"});
    const std::string type =
        "const unsigned "; // like blockIdx.x: what they are used in stays the same
    edits->push_back(
        {*body, 0,
         type + group_blocks + " = " + rows + " * gridDim.x;\n" +                               //
             type + block + " = blockIdx.y * gridDim.x + blockIdx.x;\n" +                       //
             type + group + " = " + block + " / " + group_blocks + ";\n" +                      //
             type + group_rows + " = " + group + " < gridDim.y / " + rows + " ? " + rows +      //
             " : gridDim.y % " + rows + ";\n" +                                                 //
             type + row + " = " + group + " * " + rows + " + " + block + " % " + group_blocks + //
             " % " + group_rows + ";\n" +                                                       //
             type + column + " = " + block + " % " + group_blocks + " / " + group_rows + ";\n"});
    sort_edits(*edits);
    return edits;
  }

  /// Every blockIdx.y and blockIdx.x under other names.
  std::optional<std::vector<Edit>> with_coordinates(const std::string& row,
                                                    const std::string& column) const {
    std::vector<Edit> edits;
    for (const clang::MemberExpr* component : mentions_.components) {
      const auto span = span_of(kernel_, component->getSourceRange());
      const auto name = component->getMemberDecl()->getName();
      if (!span) {
        return std::nullopt;
      }
      if (name != "z") {
        edits.push_back({span->begin, span->length(), name == "y" ? row : column});
      }
    }
    sort_edits(edits);
    const auto repeated = std::ranges::unique(edits);
    edits.erase(repeated.begin(), repeated.end());
    return edits;
  }

  const Kernel& kernel_;
  const Launch& launch_;
  GridMentions mentions_;
};

/// A kernel's own walk through the grid: two of its variables are the coordinates of its tile.
class Raster {
public:
  Raster(const Kernel& kernel, const clang::FunctionDecl& function)
      : kernel_(kernel), function_(function), locals_(const_integers(function)) {}

  /// Gives the groups another height, by the constant that decides nothing else.
  std::vector<Rewrite> rewrites() {
    if (!grid_mentions(function_).grid || !find_tile()) {
      return {};
    }
    for (const Constant& constant : find_constants(kernel_)) {
      if (constant.free && decides_only_the_walk(*constant.declaration)) {
        return with_other_heights(constant);
      }
    }
    return {};
  }

private:
  /// Finds the first two variables that take each pair of coordinates once. The walk is what is
  /// defined up to there.
  bool find_tile() {
    Evaluator evaluator(kernel_);
    for (std::size_t later = 1; later < locals_.size(); ++later) {
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        for (const auto& [row, column] : {std::pair(earlier, later), std::pair(later, earlier)}) {
          row_ = locals_[row];
          column_ = locals_[column];
          if (permutes_blocks(evaluator)) {
            walk_.assign(locals_.begin(), locals_.begin() + static_cast<std::ptrdiff_t>(later) + 1);
            return true;
          }
        }
      }
    }
    return false;
  }

  bool permutes_blocks(Evaluator& evaluator) const {
    constexpr std::array<Extent3, 5> grids{{{2, 3}, {3, 1}, {2, 8}, {3, 16}, {5, 37}}};
    return std::ranges::all_of(
        grids, [&](const Extent3& grid) { return permutes_blocks(evaluator, grid); });
  }

  bool permutes_blocks(Evaluator& evaluator, const Extent3& grid) const {
    std::set<std::pair<std::int64_t, std::int64_t>> tiles;
    for (int y = 0; y < grid.y; ++y) {
      for (int x = 0; x < grid.x; ++x) {
        const Block block{
            .kernel = &function_, .grid = grid, .block = {}, .index = {x, y, 0}, .arguments = {}};
        const auto row = evaluator.value(*row_->getInit(), block);
        const auto column = evaluator.value(*column_->getInit(), block);
        const auto* tile_row = std::get_if<Ints>(&row);
        const auto* tile_column = std::get_if<Ints>(&column);
        if (tile_row == nullptr || tile_column == nullptr || (*tile_row)[0] < 0 ||
            (*tile_row)[0] >= grid.y || (*tile_column)[0] < 0 || (*tile_column)[0] >= grid.x ||
            !tiles.insert({(*tile_row)[0], (*tile_column)[0]}).second) {
          return false;
        }
      }
    }
    return true;
  }

  /// Whether a constant stands in the walk alone, and what it decides there goes no further than
  /// the tile's coordinates.
  bool decides_only_the_walk(const clang::VarDecl& constant) const {
    std::vector<const clang::VarDecl*> decided{&constant};
    for (const clang::VarDecl* variable : walk_) {
      const bool depends = std::ranges::any_of(decided, [&](const clang::VarDecl* other) {
        return mentions(*variable->getInit(), *other);
      });
      if (depends && variable != row_ && variable != column_) {
        decided.push_back(variable);
      }
    }
    return decided.size() > 1 && std::ranges::all_of(decided, [&](const clang::VarDecl* variable) {
             const auto uses = references(kernel_, *variable);
             return uses && std::ranges::all_of(
                                *uses, [&](const Span& use) { return stands_in_walk(use); });
           });
  }

  bool stands_in_walk(const Span& use) const {
    return std::ranges::any_of(walk_, [&](const clang::VarDecl* variable) {
      const auto span = span_of(kernel_, *variable->getInit());
      return span && span->contains(use.begin);
    });
  }

  std::vector<Rewrite> with_other_heights(const Constant& constant) const {
    std::vector<Rewrite> result;
    for (const std::int64_t height : raster_heights) {
      Evaluator evaluator(kernel_, {{constant.declaration, height}});
      auto edit = set_constant(kernel_, constant, height);
      if (height != constant.value && edit && permutes_blocks(evaluator)) {
        result.push_back({raster_label(function_, height), {std::move(*edit)}});
      }
    }
    return result;
  }

  const Kernel& kernel_;
  const clang::FunctionDecl& function_;
  std::vector<const clang::VarDecl*> locals_;
  std::vector<const clang::VarDecl*> walk_;
  const clang::VarDecl* row_ = nullptr;
  const clang::VarDecl* column_ = nullptr;
};

class RasteriseBlocks : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "rasterise_blocks",
        .summary = "walks through the grid in groups of rows: blocks that run together share "
                   "operand tiles in L2",
        .before = "const int block_row = blockIdx.y * 128;",
        .after = "const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;\n"
                 "const unsigned tile_row = block / (8 * gridDim.x) * 8 + block % ... % 8;\n"
                 "const int block_row = tile_row * 128;",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    for (const Launch& launch : launches_on_planes(kernel)) {
      auto rewrites = Rasterisation(kernel, launch).rewrites();
      if (rewrites.empty()) {
        rewrites = Raster(kernel, *launch.kernel).rewrites();
      }
      std::ranges::move(rewrites, std::back_inserter(result));
    }
    return result;
  }
};

} // namespace

const Mutator& rasterise_blocks() {
  static const RasteriseBlocks mutator;
  return mutator;
}

} // namespace evo
