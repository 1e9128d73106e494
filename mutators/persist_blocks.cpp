// Lets as many blocks as run at once work off all tiles of the grid, one after the other.
//
//   before                                  after "gemm/blocks persistent 132"
//   __global__ void gemm(W, X, Y, d) {      __global__ void gemm(W, X, Y, d, grid_cols, grid_rows)
//   {
//     row = blockIdx.y * block_m;             for (tile = blockIdx.x; tile < grid_cols * grid_rows;
//     col = blockIdx.x * block_n;                  tile += gemm_blocks) {
//     ...                                       const unsigned tile_y = tile / grid_cols;
//   }                                           const unsigned tile_x = tile % grid_cols;
//                                               row = tile_y * block_m;
//                                               col = tile_x * block_n;
//                                               ...
//                                               __syncthreads();
//                                             }
//                                           }
//   gemm<<<dim3(cols, rows), ...>>>(...);   gemm<<<min(cols * rows, gemm_blocks), ...>>>(...);
//
// Tiles are taken in the order in which the card starts blocks, so a kernel that walks through its
// grid in another order goes on to do so. The barrier keeps a thread from filling shared memory for
// the next tile while another still reads it.
//
// Precondition: a kernel with a reduction through shared memory, launched once, on a grid that is
// written dim3(x, y), by a statement of its own; it asks for blockIdx and gridDim by component,
// along x and y alone, and does not return early. Two blocks per multiprocessor are offered where
// their shared memory and threads find room. Legal if the files compute the same
// (analysis/meaning.hpp), without a race, where a single block computes all tiles, at sizes with
// several tiles and at those that take every path. Every tile is computed as before, so results
// keep every bit.
//
// It comes last: behind fuse_epilogue, peel_edges, rasterise_blocks and split_tail, which want the
// grid as it was. Rewrites within a tile may follow (pipeline_copies, double_buffer, relayout_tile,
// vectorise_access, stage_epilogue, ...).
//
// Expected gain: a block is started once per multiprocessor and not once per tile, and what does
// not depend on the tile is computed once: a microsecond or two per wave, 1 % where a tile takes
// 100 microseconds. It loses where blocks take different times, for no multiprocessor takes over
// another's tiles.
#include <algorithm>
#include <array>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/footprint.hpp"
#include "mutators/analysis/grid_mentions.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/meaning.hpp"
#include "mutators/analysis/path_dims.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/stage_model.hpp"
#include "mutators/edited.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::array resident_blocks{1, 2}; // per multiprocessor

bool may_return(const clang::Stmt& code) {
  return clang::isa<clang::ReturnStmt>(code) ||
         std::ranges::any_of(code.children(), [](const clang::Stmt* child) {
           return child != nullptr && may_return(*child);
         });
}

/// Whether a statement declares what a block has once, or a view of it.
bool declares_memory(const clang::Stmt& statement) {
  const auto* definition = dyn_cast<clang::DeclStmt>(&statement);
  return definition != nullptr &&
         std::ranges::all_of(definition->decls(), [](const clang::Decl* declaration) {
           const auto* variable = dyn_cast<clang::VarDecl>(declaration);
           return variable != nullptr &&
                  (variable->hasGlobalStorage() || variable->getType()->isReferenceType());
         });
}

bool stands_in_braces(const Kernel& kernel, const clang::Stmt& statement) {
  const clang::Stmt* around = parent_of(kernel, statement);
  if (around != nullptr && clang::isa<clang::ExprWithCleanups>(around)) {
    around = parent_of(kernel, *around);
  }
  return around != nullptr && clang::isa<clang::CompoundStmt>(around);
}

/// One launch's rewrite. All of it throws CannotWrite where it cannot be written.
class Persistence {
public:
  Persistence(const Kernel& kernel, const Launch& launch)
      : kernel_(kernel), launch_(launch), grid_(grid_sides(present(launch.grid))),
        mentions_(grid_mentions(*launch.kernel)) {
    Names names(kernel);
    const std::string prefix = launch.kernel->getNameAsString() + "_";
    blocks_ = names.fresh(prefix + "blocks");
    columns_ = names.fresh("grid_cols");
    rows_ = names.fresh("grid_rows");
    tile_ = names.fresh("tile_index");
    x_ = names.fresh("tile_x");
    y_ = names.fresh("tile_y");
    entry_columns_ = names.fresh(prefix + "grid_cols");
    entry_rows_ = names.fresh(prefix + "grid_rows");
    tiles_ = names.fresh(prefix + "tiles");
    entry_grid_ = names.fresh(prefix + "grid");
  }

  std::vector<Edit> edits(std::int64_t blocks) {
    edits_.clear();
    write_kernel(blocks);
    write_launch();
    sort_edits(edits_);
    return edits_;
  }

private:
  std::string text(const clang::Expr& expr, Binding binding) const {
    const auto found = operand(kernel_, expr, binding);
    return found ? *found : throw CannotWrite{};
  }
  Span span(const clang::Expr& expr) const {
    return checked(span_of(kernel_, expr.getSourceRange()));
  }
  void insert(unsigned offset, std::string text) { edits_.push_back({offset, 0, std::move(text)}); }

  bool asks_by_component() const {
    return mentions_.block != nullptr && mentions_.only_by_component() &&
           mentions_.grid_uses == mentions_.grid_components.size() &&
           only_kernels_ask(kernel_, *mentions_.block) &&
           (mentions_.grid == nullptr || only_kernels_ask(kernel_, *mentions_.grid));
  }

  void write_kernel(std::int64_t blocks) {
    const clang::FunctionDecl& function = *launch_.kernel;
    const auto& body = *dyn_cast<clang::CompoundStmt>(function.getBody());
    const auto before = offset_before(kernel_, function);
    const auto* first =
        std::find_if_not(body.body_begin(), body.body_end(),
                         [](const clang::Stmt* statement) { return declares_memory(*statement); });
    if (!asks_by_component() || !before || first == body.body_end() || may_return(body)) {
      throw CannotWrite{};
    }
    insert(*before, "constexpr int " + blocks_ + " = " + std::to_string(blocks) +
                        "; // that run at once\n\n");
    const auto* last = function.getParamDecl(function.getNumParams() - 1);
    insert(checked(span_of(kernel_, last->getSourceRange())).end,
           ", unsigned " + columns_ + ", unsigned " + rows_);
    replace(mentions_.components, x_, y_);
    replace(mentions_.grid_components, columns_, rows_);
    insert(checked(span_of(kernel_, **first)).begin,
           "for (unsigned " + tile_ + " = blockIdx.x; " + tile_ + " < " + columns_ + " * " + rows_ +
               "; " + tile_ + " += " + blocks_ + ") {\n" +                         //
               "const unsigned " + y_ + " = " + tile_ + " / " + columns_ + ";\n" + //
               "const unsigned " + x_ + " = " + tile_ + " % " + columns_ + ";\n");
    insert(checked(span_of(kernel_, body)).end - 1,
           "__syncthreads(); // the next tile goes where this one was\n}\n");
  }

  void replace(const std::vector<const clang::MemberExpr*>& components, const std::string& x,
               const std::string& y) {
    for (const clang::MemberExpr* component : components) {
      const auto name = component->getMemberDecl()->getName();
      const Span at = span(*component);
      edits_.push_back({at.begin, at.length(),
                        name == "x"   ? x
                        : name == "y" ? y
                                      : throw CannotWrite{}});
    }
  }

  void write_launch() {
    const Span call = checked(span_of(kernel_, static_cast<const clang::Stmt&>(*launch_.call)));
    const Span grid = span(*launch_.grid);
    if (launch_.arguments.empty() || !stands_in_braces(kernel_, *launch_.call)) {
      throw CannotWrite{};
    }
    const auto define = [&](const std::string& name, const std::string& value) {
      insert(call.begin, "const int " + name + " = " + value + ";\n");
    };
    define(entry_columns_, text(present(grid_.x), Binding::Sum));
    define(entry_rows_, text(present(grid_.y), Binding::Sum));
    define(tiles_, entry_columns_ + " * " + entry_rows_);
    define(entry_grid_, tiles_ + " < " + blocks_ + " ? " + tiles_ + " : " + blocks_);
    edits_.push_back({grid.begin, grid.length(), entry_grid_});
    insert(span(*launch_.arguments.back()).end, ", " + entry_columns_ + ", " + entry_rows_);
  }

  const Kernel& kernel_;
  const Launch& launch_;
  GridSides grid_;
  GridMentions mentions_;
  std::string blocks_, columns_, rows_, tile_, x_, y_; // in the kernel
  std::string entry_columns_, entry_rows_, tiles_, entry_grid_;
  std::vector<Edit> edits_;
};

/// What the entry launches of a kernel at a size; nullopt where that is not known.
std::optional<EvaluatedLaunch> launch_at(const Kernel& kernel, const EntryDims& dims,
                                         const Launch& launch, std::int64_t size) {
  for (EvaluatedLaunch& found : launches_at(kernel, dims, size)) {
    if (found.launch.call == launch.call) {
      return std::move(found);
    }
  }
  return std::nullopt;
}

/// Sizes that take every path of a block, and the first one with several tiles. Empty where one is
/// not found.
std::vector<std::vector<std::int64_t>>
dims_of_several_tiles(const Kernel& kernel, const EntryDims& dims, const Launch& launch) {
  constexpr std::int64_t widest_tile = 512;
  auto result = dims_of_all_paths(kernel);
  for (std::int64_t size = 1; !result.empty() && size <= widest_tile; ++size) {
    const auto found = launch_at(kernel, dims, launch, size);
    if (found && found->grid.count() > 1) {
      result.push_back(dims.at(size));
      return result;
    }
  }
  return {};
}

class PersistBlocks : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "persist_blocks",
        .summary = "lets as many blocks as run at once work off all tiles: no block is started for "
                   "each, and none takes over from another",
        .before = "gemm<<<dim3(cols, rows), ...>>>(W, X, Y, d);",
        .after = "gemm<<<min(cols * rows, 132), ...>>>(W, X, Y, d, cols, rows);",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const auto dims = find_dims(kernel);
    const std::vector<Stages> stages = find_stages(kernel);
    for (const Launch& launch : find_launches(kernel)) {
      const bool through_shared_memory = std::ranges::any_of(
          stages, [&](const Stages& s) { return s.kernel == launch.kernel && !s.tiles.empty(); });
      if (dims && through_shared_memory && is_used_once(kernel, *launch.kernel)) {
        std::ranges::move(rewrites(kernel, *dims, launch), std::back_inserter(result));
      }
    }
    return result;
  }

private:
  static std::vector<Rewrite> rewrites(const Kernel& kernel, const EntryDims& dims,
                                       const Launch& launch) {
    std::vector<Rewrite> result;
    try {
      Persistence persistence(kernel, launch);
      if (!keeps_results(kernel, dims, launch, persistence.edits(1))) {
        return {};
      }
      for (const int resident : resident_blocks) {
        const std::int64_t blocks = std::int64_t{resident} * kernel.target().multiprocessors;
        if (resident == 1 || find_room(kernel, dims, launch, resident)) {
          result.push_back(
              {launch.kernel->getNameAsString() + "/blocks persistent " + std::to_string(blocks),
               persistence.edits(blocks)});
        }
      }
    } catch (const CannotWrite&) {
      return {};
    }
    return result;
  }

  static bool keeps_results(const Kernel& kernel, const EntryDims& dims, const Launch& launch,
                            const std::vector<Edit>& edits) {
    const auto after = edited(kernel, edits);
    const auto sizes = after ? dims_of_several_tiles(kernel, dims, launch)
                             : std::vector<std::vector<std::int64_t>>{};
    return !sizes.empty() &&
           std::ranges::none_of(sizes, [&](const auto& at) { return has_races(*after, at); }) &&
           same_meaning(kernel, *after, sizes);
  }

  static bool find_room(const Kernel& kernel, const EntryDims& dims, const Launch& launch,
                        int resident) {
    constexpr std::int64_t some_size = 1027; // blocks and their memory are the same at all
    const Target& target = kernel.target();
    const auto found = launch_at(kernel, dims, launch, some_size);
    return found && resident * found->shared_bytes <= target.shared_bytes_per_sm &&
           resident * found->block.count() <= target.threads_per_sm;
  }
};

} // namespace

const Mutator& persist_blocks() {
  static const PersistBlocks mutator;
  return mutator;
}

} // namespace evo
