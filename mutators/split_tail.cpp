// Splits the sums of a grid's last tiles into halves, so that the last wave of blocks is no longer
// than it must be.
//
//   before                                  after "gemm/k0 split tail 132"
//   __global__ void gemm(W, X, Y, d) {      __global__ void gemm(W, X, Y, d, rest, whole_rows) {
//     row = blockIdx.y * block_m;             const int tail_row = blockIdx.y - whole_rows;
//                                             const unsigned tile_row = tail_row < 0
//                                                 ? blockIdx.y : whole_rows + tail_row / 2;
//                                             k_begin, k_end: all of k, or this block's half
//                                             float *const Y_part = second_half ? rest : Y;
//                                             row = tile_row * block_m;
//     for (k0 = 0; k0 < d; k0 += K) ...       for (k0 = k_begin; k0 < k_end; k0 += K) ...
//     Y[...] = sum;                           Y_part[...] = sum;
//   }                                       }
//   gemm<<<dim3(cols, rows), ...>>>(...);   gemm<<<dim3(cols, rows + split), ...>>>(...);
//                                           if (split > 0) add_tail<<<...>>>(rest, Y, ...);
//
// `split` is decided at each call: as many rows of tiles as hold what is left after full waves of
// 132 blocks, if twice that still fits into one wave and each half has a tile of k; else none. The
// rest has a matrix of its own behind what else is in the workspace.
//
// Precondition: a launch of its own statement whose grid is dim3(x, y) and whose kernel alone uses
// its function, asks for blockIdx.y times the tile's height and not for gridDim; its reduction
// loops, or loops that run them in pieces, count from 0 to one of its sizes; a prologue that loads
// tiles ahead, and tests of whether there is a tile, follow that count (double_buffer's prologue
// does not: split first). Legal if the files compute the same polynomials of their inputs
// (analysis/meaning.hpp), with all tiles split and with none, at sizes that take every path.
//
// It comes behind peel_edges and before rasterise_blocks.
//
// It changes the order of rounding: of a split tile two sums are added.
//
// Expected gain: with 450 tiles on 132 multiprocessors, 3.5 waves instead of 4. Nothing where the
// last wave is more than half full.
#include <algorithm>
#include <array>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/dependence_graph.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/grid_mentions.hpp"
#include "mutators/analysis/loops.hpp"
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
#include "mutators/tile_range.hpp"
#include "mutators/workspace_size.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::array blocks_per_multiprocessor{1, 2};

/// The reductions of a kernel, or the loops that run them in pieces, with one limit and step.
std::optional<TileLoops> tile_loops(const Kernel& kernel, const std::vector<Stages>& reductions) {
  TileLoops found;
  for (const Stages& stages : reductions) {
    if (stages.inside_loop && stages.tiles.empty()) {
      continue; // of an epilogue
    }
    const auto reduction = counted_loop(kernel, *stages.loop);
    const auto pieces = reduction ? loop_over_pieces(kernel, *reduction) : std::nullopt;
    const auto& loop = pieces ? pieces : reduction;
    const auto* limit =
        loop ? clang::dyn_cast_or_null<clang::ParmVarDecl>(variable_of(loop->limit)) : nullptr;
    const clang::Expr* step = reduction ? reduction->step : nullptr;
    const bool alike = limit != nullptr && step != nullptr &&
                       constant_value(kernel, *loop->start) == 0 &&
                       (found.loops.empty() ||
                        (found.limit == limit && same_expression(kernel, found.step, step)));
    if (!alike || (stages.inside_loop && !pieces) || stages.tiles.empty()) {
      return std::nullopt;
    }
    found.loops.push_back(*loop);
    found.limit = limit;
    found.step = step;
  }
  return found.loops.empty() ? std::nullopt : std::optional(std::move(found));
}

/// One launch's rewrite. All of it throws CannotWrite where it cannot be written.
class TailSplit {
public:
  TailSplit(const Kernel& kernel, const DependenceGraph& graph, std::size_t launch,
            const TileLoops& loops)
      : kernel_(kernel), graph_(graph), launch_(graph.launches()[launch]), loops_(loops),
        output_(present(parameter_for(graph, launch_, only_written(graph.uses(launch))))),
        grid_(grid_sides(present(launch_.grid))), mentions_(grid_mentions(*launch_.kernel)) {
    Names names(kernel);
    const std::string prefix = launch_.kernel->getNameAsString() + "_";
    wave_ = names.fresh(prefix + "wave");
    rest_ = names.fresh(output_.getNameAsString() + "_rest");
    part_ = names.fresh(output_.getNameAsString() + "_part");
    whole_rows_ = names.fresh("whole_rows");
    tile_row_ = names.fresh("tile_row");
    tail_row_ = names.fresh("tail_row");
    second_ = names.fresh("second_half");
    middle_ = names.fresh("k_middle");
    begin_ = names.fresh("k_begin");
    end_ = names.fresh("k_end");
    add_ = names.fresh("add_tail");
    add_threads_ = names.fresh(add_ + "_threads");
    first_row_ = names.fresh("first_row");
    split_ = names.fresh(prefix + "split");
  }

  std::vector<Edit> edits(int wave) {
    edits_.clear();
    write_kernel(wave);
    write_loops();
    write_adding_kernel();
    write_launch();
    write_workspace();
    sort_edits(edits_);
    return edits_;
  }

private:
  Span span(const clang::Stmt& code) const {
    return checked(span_of(kernel_, code.getSourceRange()));
  }
  std::string text(const clang::Expr& expr, Binding binding) const {
    const auto found = operand(kernel_, expr, binding);
    return found ? *found : throw CannotWrite{};
  }
  void insert(unsigned offset, std::string text) { edits_.push_back({offset, 0, std::move(text)}); }
  void replace(const Span& at, std::string text) {
    edits_.push_back({at.begin, at.length(), std::move(text)});
  }
  unsigned before(const clang::Decl& declaration) const {
    const auto offset = offset_before(kernel_, declaration);
    return offset ? *offset : throw CannotWrite{};
  }

  const clang::ParmVarDecl& entry_parameter(const clang::Expr& argument) const {
    return present(clang::dyn_cast_or_null<clang::ParmVarDecl>(variable_of(&argument)));
  }
  /// The size in the entry.
  const clang::ParmVarDecl& side() const {
    const auto& limit = present(dyn_cast<clang::ParmVarDecl>(loops_.limit));
    return entry_parameter(*launch_.arguments[limit.getFunctionScopeIndex()]);
  }

  std::string element() const { return output_.getType()->getPointeeType().getAsString(); }

  // ---- the kernel -------------------------------------------------------------------------------

  /// The number that each blockIdx.y is multiplied by.
  const clang::Expr& tile_height() const {
    const clang::Expr* height = nullptr;
    for (const clang::MemberExpr* component : mentions_.components) {
      if (component->getMemberDecl()->getName() != "y") {
        continue;
      }
      const clang::Stmt* around = parent_of(kernel_, *component);
      while (around != nullptr && clang::isa<clang::ImplicitCastExpr>(around)) {
        around = parent_of(kernel_, *around);
      }
      const auto* product = clang::dyn_cast_or_null<clang::BinaryOperator>(around);
      if (product == nullptr || product->getOpcode() != clang::BO_Mul) {
        throw CannotWrite{};
      }
      const bool left = contains(*product->getLHS(), *component);
      const clang::Expr& other = left ? *product->getRHS() : *product->getLHS();
      if (!constant_value(kernel_, other) ||
          (height != nullptr && !same_expression(kernel_, height, &other))) {
        throw CannotWrite{};
      }
      height = &other;
    }
    return present(height);
  }

  void write_kernel(int wave) {
    const clang::FunctionDecl& function = *launch_.kernel;
    if (mentions_.grid || !mentions_.only_by_component() || mentions_.block == nullptr ||
        !only_kernels_ask(kernel_, *mentions_.block)) {
      throw CannotWrite{};
    }
    insert(before(function), "constexpr int " + wave_ + " = " + std::to_string(wave) +
                                 "; // blocks that run at once\n\n");
    const auto* last = function.getParamDecl(function.getNumParams() - 1);
    insert(checked(span_of(kernel_, last->getSourceRange())).end,
           ", " + declaration(kernel_, output_, rest_) + ", int " + whole_rows_);
    for (const clang::MemberExpr* component : mentions_.components) {
      if (component->getMemberDecl()->getName() == "y") {
        replace(span(*component), tile_row_);
      }
    }
    const auto uses = references(kernel_, output_);
    for (const Span& use : uses ? *uses : throw CannotWrite{}) {
      replace(use, part_);
    }
    const auto first = begin_of_first_use(kernel_, function, *mentions_.block);
    insert(first ? *first : throw CannotWrite{}, definitions());
  }

  std::string definitions() const {
    const std::string size = loops_.limit->getNameAsString();
    const std::string step = text(*loops_.step, Binding::Operand);
    return "const int " + tail_row_ + " = static_cast<int>(blockIdx.y) - " + whole_rows_ +
           ";\n" + //
           "const unsigned " + tile_row_ + " = " + tail_row_ +
           " < 0 ? blockIdx.y : " + whole_rows_ + " + " + tail_row_ + " / 2;\n" + //
           "const bool " + second_ + " = " + tail_row_ + " >= 0 && " + tail_row_ +
           " % 2 == 1;\n" + //
           "const int " + middle_ + " = (" + size + " / " + step + " + 1) / 2 * " + step +
           ";\n" +                                                                 //
           "const int " + begin_ + " = " + second_ + " ? " + middle_ + " : 0;\n" + //
           "const int " + end_ + " = " + tail_row_ + " < 0 || " + second_ + " ? " + size + " : " +
           middle_ + ";\n" + //
           element() + " *const " + part_ + " = " + second_ + " ? " + rest_ + " : " +
           output_.getNameAsString() + ";\n";
  }

  void write_loops() {
    std::ranges::move(count_tiles(kernel_, *launch_.kernel, loops_, begin_, end_),
                      std::back_inserter(edits_));
  }

  void write_adding_kernel() {
    const clang::FunctionDecl& workspace = present(workspace_function(kernel_, graph_.entry()));
    if (kernel_.ast().getSourceManager().isBeforeInTranslationUnit(graph_.entry().getLocation(),
                                                                   workspace.getLocation())) {
      throw CannotWrite{};
    }
    Names names(kernel_);
    const std::string rest = names.fresh("rest");
    const std::string sums = names.fresh("sums");
    const std::string width = names.fresh("width");
    const std::string row = names.fresh("rest_row");
    const std::string column = names.fresh("rest_col");
    const std::string place = "[" + row + " * " + width + " + " + column + "]";
    insert(before(workspace), "constexpr int " + add_threads_ + " = 256;\n\n" +
                                  "// The sums of the second halves on top of the first ones.\n" +
                                  "__global__ void " + add_ + "(const " + element() + " *" + rest +
                                  ", " + element() + " *" + sums + ", int " + first_row_ +
                                  ", int " + width + ") {\nconst int " + row + " = " + first_row_ +
                                  " + blockIdx.y;\nconst int " + column + " = blockIdx.x * " +
                                  add_threads_ + " + threadIdx.x;\nif (" + column + " < " + width +
                                  ") {\n" + sums + place + " += " + rest + place + ";\n}\n}\n\n");
  }

  // ---- the entry --------------------------------------------------------------------------------

  void write_launch() {
    const clang::Expr& columns = present(grid_.x);
    const clang::Expr& rows = present(grid_.y);
    const Span call = checked(span_of(kernel_, static_cast<const clang::Stmt&>(*launch_.call)));
    const std::string prefix = launch_.kernel->getNameAsString() + "_";
    Names names(kernel_);
    const std::string rows_name = names.fresh(prefix + "rows");
    const std::string columns_name = names.fresh(prefix + "cols");
    const std::string tail = names.fresh(prefix + "tail");
    const std::string width = side().getNameAsString();
    insert(call.begin, "const int " + columns_name + " = " + text(columns, Binding::Sum) +
                           ";\n" +                                                               //
                           "const int " + rows_name + " = " + text(rows, Binding::Sum) + ";\n" + //
                           "const int " + tail + " = " + columns_name + " * " + rows_name + " % " +
                           wave_ + ";\n" + //
                           "const int " + split_ + " = 2 * " + tail + " <= " + wave_ + " && 2 * " +
                           text(*loops_.step, Binding::Operand) + " <= " + width + " ? (" + tail +
                           " + " + columns_name + " - 1) / " + columns_name + " : 0;\n" + //
                           element() + " *" + rest_ + " = static_cast<" + element() + " *>(" +
                           workspace_pointer().getNameAsString() + ") + " + workspace_bytes() +
                           " / sizeof(" + element() + ") - " + width + " * " + width + ";\n");
    replace(span(columns), columns_name);
    replace(span(rows), rows_name + " + " + split_);
    insert(span(*launch_.arguments.back()).end, ", " + rest_ + ", " + rows_name + " - " + split_);
    insert(call.end, "\nif (" + split_ + " > 0) {\nconst int " + first_row_ + " = (" + rows_name +
                         " - " + split_ + ") * " + text(tile_height(), Binding::Operand) + ";\n" +
                         add_ + "<<<dim3((" + width + " + " + add_threads_ + " - 1) / " +
                         add_threads_ + ", " + width + " - " + first_row_ + "), " + add_threads_ +
                         ", 0, " + text(present(launch_.stream), Binding::Sum) + ">>>(" + rest_ +
                         ", " + known_output() + ", " + first_row_ + ", " + width + ");\n}");
  }

  std::string known_output() const {
    return entry_parameter(*launch_.arguments[output_.getFunctionScopeIndex()]).getNameAsString();
  }

  const clang::ParmVarDecl& workspace_pointer() const {
    const auto parameters = graph_.entry().parameters();
    const auto found = std::ranges::find_if(parameters, [](const clang::ParmVarDecl* parameter) {
      return parameter->getType()->isVoidPointerType();
    });
    return found == parameters.end() ? throw CannotWrite{} : **found;
  }

  /// A call that tells how many there are.
  std::string workspace_bytes() const {
    const clang::FunctionDecl& workspace = present(workspace_function(kernel_, graph_.entry()));
    std::string arguments;
    for (const clang::ParmVarDecl* parameter : graph_.entry().parameters()) {
      if (parameter->getType()->isIntegerType() &&
          parameter_of_workspace(graph_.entry(), workspace, *parameter) != nullptr) {
        arguments += (arguments.empty() ? "" : ", ") + parameter->getNameAsString();
      }
    }
    return workspace.getNameAsString() + "(" + arguments + ")";
  }

  void write_workspace() {
    const clang::FunctionDecl& workspace = present(workspace_function(kernel_, graph_.entry()));
    const clang::Expr& bytes = present(bytes_returned(workspace));
    const std::string width =
        present(parameter_of_workspace(graph_.entry(), workspace, side())).getNameAsString();
    const bool none = constant_value(kernel_, bytes) == 0;
    replace(span(bytes), (none ? "" : text(bytes, Binding::Sum) + " + ") + "sizeof(" + element() +
                             ") * " + width + " * " + width);
  }

  const Kernel& kernel_;
  const DependenceGraph& graph_;
  const Launch& launch_;
  const TileLoops& loops_;
  const clang::ParmVarDecl& output_; // of the kernel
  GridSides grid_;
  GridMentions mentions_;
  std::string wave_, rest_, part_, whole_rows_, tile_row_, tail_row_, second_;
  std::string middle_, begin_, end_, add_, add_threads_, first_row_, split_;
  std::vector<Edit> edits_;
};

bool keeps_meaning(const Kernel& kernel, const std::vector<Edit>& edits,
                   const std::vector<std::vector<std::int64_t>>& dims) {
  const auto after = edited(kernel, edits);
  return after && same_meaning(kernel, *after, dims);
}

class SplitTail : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "split_tail",
        .summary = "gives the tiles of a last wave that is less than half full to two blocks "
                   "each: a shorter last wave for one more pass over these tiles",
        .before = "gemm<<<dim3(cols, rows), ...>>>(W, X, Y, d);",
        .after = "gemm<<<dim3(cols, rows + split), ...>>>(W, X, Y, d, rest, rows - split);\n"
                 "if (split > 0) add_tail<<<...>>>(rest, Y, ...);",
        .keeps_order = false,
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const std::vector<DeviceLoop> all = device_loops(kernel);
    const std::vector<Stages> stages = find_stages(kernel);
    const auto graph = DependenceGraph::of(kernel);
    for (std::size_t i = 0; graph && i < graph->launches().size(); ++i) {
      const clang::FunctionDecl& function = *graph->launches()[i].kernel;
      std::vector<Stages> reductions;
      std::ranges::copy_if(stages, std::back_inserter(reductions),
                           [&](const Stages& s) { return s.kernel == &function; });
      const auto loops =
          is_used_once(kernel, function) ? tile_loops(kernel, reductions) : std::nullopt;
      const DeviceLoop* first = loops ? find_loop(all, *reductions.front().loop) : nullptr;
      if (first != nullptr) {
        std::ranges::move(rewrites(kernel, *graph, i, *loops, first->name),
                          std::back_inserter(result));
      }
    }
    return result;
  }

private:
  static std::vector<Rewrite> rewrites(const Kernel& kernel, const DependenceGraph& graph,
                                       std::size_t launch, const TileLoops& loops,
                                       const std::string& name) {
    constexpr int none_split = 1; // waves of one block are always full
    const int multiprocessors = kernel.target().multiprocessors;
    std::vector<Rewrite> result;
    try {
      TailSplit split(kernel, graph, launch, loops);
      const auto dims = dims_of_all_paths(kernel);
      if (!keeps_meaning(kernel, split.edits(none_split), dims) ||
          !keeps_meaning(kernel, split.edits(multiprocessors), dims)) {
        return {};
      }
      for (const int blocks : blocks_per_multiprocessor) {
        const int wave = blocks * multiprocessors;
        result.push_back({name + " split tail " + std::to_string(wave), split.edits(wave)});
      }
    } catch (const CannotWrite&) {
      return {};
    }
    return result;
  }
};

} // namespace

const Mutator& split_tail() {
  static const SplitTail mutator;
  return mutator;
}

} // namespace evo
