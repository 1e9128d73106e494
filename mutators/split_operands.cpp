// Splits the matrices that a kernel multiplies on tensor cores before it is launched, instead of
// their tiles in registers.
//
//   before                                    after "gemm/k split beforehand"
//   struct Tiles {                            struct Tiles {
//     float w[M][K];                            unsigned w[K / 16][M * parts * 8];
//     float x[K][N]; };                         unsigned x[K / 16][N * parts * 8]; };
//   __global__ void gemm(W, X, Y, d) {        __global__ void gemm(W, X, Y, d) {
//     for (k0 ...) {                            for (k0 ...) {
//       w[row][k] = inside ?                      w[panel][word] = four words of W at once
//           W[...] : 0;
//       x[k][col] = ...                           x[panel][word] = ...
//       for (k += 16) {                           for (k += 16) {
//         for (j += 2)                              for (pairs of fragments)
//           x_parts = x[..][..], split                ldmatrix_x4(x_parts[..], ...)
//         for (i += 2) {                            for (i += 2) {
//           w_parts = w[..][..], split                for (part) ldmatrix_x4(w_parts[part], ...)
//           mma_bf16(...)                             mma_bf16(...)
//                                             __global__ void split_w(W, words, ...);
//   gemm<<<...>>>(W, X, Y, d);                split_w<<<...>>>(W, w_words, ...);
//                                             split_x<<<...>>>(X, x_words, ...);
//                                             gemm<<<...>>>(w_words, x_words, Y, d);
//
// The words lie in the workspace as mma.sync wants them. A panel is what one instruction takes
// along k (16 of bf16 and fp16, 8 of tf32); in a panel eight rows of w, or columns of x, belong
// together; of each of their parts there are the two halves along k, and in a half one row of 16
// bytes under the other: an 8x8 matrix of ldmatrix is 128 bytes in a row. A tile of a panel is one
// piece. Both matrices are zeros from their ends on up to a multiple of the tile.
//
// The tiles may be one or several (double-buffered, pipelined, some by way of registers), and the
// paths through the kernel too (inside and at the edges): every statement that fills a tile, and
// every one that reads it, keeps its place, and with it what the loop awaits and when.
//
// Precondition: calls of one mma.sync, as tensorise writes it; tiles that only statements of their
// own fill, each from a matrix that nothing else of the kernel reads and whose size they compare
// their coordinates with; a sum that ends with the matrices; a launch that is alone with this
// kernel. Legal if both files compute the same polynomials of their inputs (analysis/meaning.hpp),
// the new one without races. The products and their order stay the same, bit for bit.
//
// Expected gain: a float is split once, instead of once per tile that it is in; a register of the
// operands costs a quarter of an instruction instead of six; shared memory is read without bank
// conflicts; and at any size and alignment every copy is 16 bytes wide, without a guard. It costs a
// pass over both matrices, and the room for their parts.
#include <algorithm>
#include <iterator>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/TypeLoc.h>

#include "mutators/analysis/dependence_graph.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/loop_nest.hpp"
#include "mutators/analysis/product_core.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/edited.hpp"
#include "mutators/filled_in.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/leaf_helpers.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/registry.hpp"
#include "mutators/removal.hpp"
#include "mutators/render.hpp"
#include "mutators/split_texts.hpp"
#include "mutators/tile_alignment.hpp"
#include "mutators/warp_operands.hpp"
#include "mutators/workspace_size.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// One kernel's rewrite. All of it throws CannotWrite where something cannot be written.
class Splitting {
public:
  Splitting(const Kernel& kernel, const DependenceGraph& graph, const WarpOperands& operands,
            const ThreadBlock& block, const Launch& launch)
      : kernel_(kernel), graph_(graph), operands_(operands), block_(block), launch_(launch),
        helpers_(kernel), names_(kernel), removal_(kernel) {}

  std::vector<Edit> edits() {
    const TensorType& type = *operands_.type;
    texts_ = {{"depth", number(type.depth)},
              {"chunk", number(type.depth / 2)},
              {"parts", operands_.parts->getNameAsString()},
              {"threads", block_.written},
              {"lane", operands_.lane->getNameAsString()},
              {"tile_k", text(*operands_.left.tile_k, Binding::Product)},
              {"kernel", operands_.function->getNameAsString()},
              {"round_up", names_.fresh("round_up")},
              {"size", names_.fresh("size")},
              {"multiple", names_.fresh("multiple")},
              {"word", names_.fresh("word")},
              {"copy", names_.fresh("copy")},
              {"panel", names_.fresh("panel")},
              {"offset", names_.fresh("offset")},
              {"pair", names_.fresh("pair")},
              {"fragments", names_.fresh("fragments")},
              {"fragment", names_.fresh("fragment")},
              {"round", helpers_.use(type.round)},
              {"take_low", type.numbers == 1 ? std::string(type.low) : helpers_.use(type.low)},
              {"take_high", type.numbers == 1 ? "" : helpers_.use(type.high)}};
    write_operand(operands_.left, true);
    write_operand(operands_.right, false);
    const Texts names = split_names();
    const std::string kernels = filled_in(split_texts::round_up_text, texts_) + copies_ +
                                split_kernel(operands_.left, names) +
                                split_kernel(operands_.right, names);
    const auto place = offset_before(kernel_, *operands_.function);
    insert(place ? *place : throw CannotWrite{}, kernels + "\n");
    write_entry();
    removal_.unneeded_declarations({});
    std::ranges::copy(helpers_.edits(), std::back_inserter(edits_));
    std::ranges::copy(removal_.edits(), std::back_inserter(edits_));
    sort_edits(edits_);
    edits_.erase(std::ranges::unique(edits_).begin(), edits_.end()); // alignments
    return std::move(edits_);
  }

private:
  static std::string number(std::int64_t value) { return std::to_string(value); }
  Span span(clang::SourceRange range) const { return checked(span_of(kernel_, range)); }
  void replace(Span span, std::string text) {
    edits_.push_back({span.begin, span.length(), std::move(text)});
  }
  void insert(unsigned offset, std::string text) { edits_.push_back({offset, 0, std::move(text)}); }
  std::string text(const clang::Expr& expr, Binding binding) const {
    const auto found = operand(kernel_, expr, binding);
    return found ? *found : throw CannotWrite{};
  }
  static std::string tile_name(const WarpOperand& operand) {
    return operand.tile->getNameAsString();
  }

  // ---- the kernel -------------------------------------------------------------------------------

  void write_operand(const WarpOperand& operand, bool is_left) {
    Texts& texts = operand_texts_[&operand];
    texts = texts_;
    const std::string name = tile_name(operand);
    texts["tile"] = tile_text(operand);
    texts["tile_across"] = text(*operand.tile_across, Binding::Product);
    texts["rounded"] = names_.fresh(name + "_rows");
    texts["group"] = names_.fresh(name + "_group");
    texts["across"] = operand.across->getNameAsString();
    texts["limit"] = operands_.depth->getNameAsString();
    texts["matrix"] = operand.matrix->getNameAsString();
    texts["split"] = names_.fresh("split_" + name);
    texts["passed"] = names_.fresh(name + "_words");
    texts["tile_words"] = filled_in("$tile_k / $depth * ($tile_across * $parts * 8)", texts);
    if (operand.stages != nullptr) {
      texts["copies"] =
          names_.fresh(operands_.function->getNameAsString() + "_" + name + "_copies");
      copies_ += filled_in(split_texts::copies_text, texts);
    }
    declare_tile(operand, texts);
    declare_places(operand, texts);
    for (const TileCopy& copy : operand.copies) {
      write_copy(operand, copy, texts);
    }
    for (const WarpMultiply& product : operands_.products) {
      write_read(product, is_left ? product.left : product.right, is_left, texts);
    }
    const Span parameter = span(operand.matrix->getSourceRange());
    replace(
        parameter,
        "const unsigned *" +
            std::string(operand.matrix->getType().isRestrictQualified() ? "__restrict__ " : "") +
            operand.matrix->getNameAsString());
  }

  void write_copy(const WarpOperand& operand, const TileCopy& copy, Texts texts) {
    const std::string tile = texts.at("tile");
    texts["tile"] = tile + stage(copy.stage);
    texts["k"] =
        copy.k.size() == 1 ? text(*copy.k.front(), Binding::Product) : "(" + sum(copy.k) + ")";
    texts["block_across"] = sum(copy.across);
    const std::string to = filled_in(split_texts::to_text, texts);
    const std::string from = copy.k.empty() ? "" : filled_in(split_texts::from_text, texts);
    const std::string staged =
        copy.registers == nullptr ? ""
                                  : filled_in(copy.registers->getNameAsString() + "[$copy]", texts);
    texts["copy_word"] =
        filled_in(split_texts::word_text, texts) + copied_word(copy.way, to, from, staged);
    const Span written = lines_of(*copy.statement);
    replace(written, filled_in(operand.stages == nullptr ? split_texts::loop_text
                                                         : split_texts::unrolled_text,
                               texts));
    removal_.replaced(written);
    if (copy.way == TileCopy::Way::ToRegisters) {
      const Span declared = span(copy.registers->getSourceRange());
      replace(declared,
              filled_in("uint4 " + copy.registers->getNameAsString() + "[$copies]", texts));
      removal_.replaced(declared);
    }
  }

  /// With its pragmas, from the beginning of a line on, where a pragma may stand.
  Span lines_of(const clang::Stmt& statement) const {
    const auto begin = begin_of(kernel_, statement);
    const unsigned line = line_begin(kernel_, begin ? *begin : throw CannotWrite{});
    return kernel_.source().find_first_not_of(' ', line) >= *begin
               ? Span{line, checked(span_of(kernel_, statement)).end}
               : throw CannotWrite{};
  }

  static std::string copied_word(TileCopy::Way way, const std::string& to, const std::string& from,
                                 const std::string& staged) {
    const std::string target = "*reinterpret_cast<uint4 *>(" + to + ")";
    const std::string source = "*reinterpret_cast<const uint4 *>(" + from + ")";
    switch (way) {
    case TileCopy::Way::Direct:
      return target + " = " + source + ";";
    case TileCopy::Way::Async:
      return "__pipeline_memcpy_async(" + to + ", " + from + ", sizeof(uint4));";
    case TileCopy::Way::ToRegisters:
      return staged + " = " + source + ";";
    case TileCopy::Way::FromRegisters:
      return target + " = " + staged + ";";
    }
    throw CannotWrite{};
  }

  void write_read(const WarpMultiply& product, const WarpRead& read, bool is_left, Texts texts) {
    const bool in_pairs = !is_left && can_load_pairs(read);
    texts["tile"] += stage(read.stage);
    texts["part"] = read.part->getNameAsString();
    texts["registers"] = text(*read.part_registers, Binding::Operand);
    texts["k"] = product.k.counted.counter->getNameAsString();
    texts["accumulator"] = read.accumulators.counted.counter->getNameAsString();
    texts["accumulators"] = text(*read.accumulators.counted.limit, Binding::Product);
    texts["slot"] = read.slots.counted.counter->getNameAsString();
    texts["load_matrices"] = helpers_.use(is_left || in_pairs ? "ldmatrix_x4" : "ldmatrix_x2");
    const DeviceLoop& replaced = in_pairs ? read.accumulators : read.slots;
    replace(checked(span_of(kernel_, *replaced.counted.loop)),
            filled_in(is_left    ? split_texts::left_text
                      : in_pairs ? split_texts::right_pairs_text
                                 : split_texts::right_text,
                      texts));
  }

  /// An accumulator's fragments are two matrices each, as many as it has parts, and those of the
  /// next accumulator follow: two fragments make one load where their number is even.
  bool can_load_pairs(const WarpRead& read) const {
    const auto fragments = trip_count(kernel_, read.accumulators.counted);
    const auto parts = constant_value(kernel_, present(operands_.parts->getInit()));
    const clang::Stmt* inner = only_statement(read.accumulators.counted.loop->getBody());
    return fragments && parts && *fragments * *parts % 2 == 0 &&
           without_pragmas(inner) == read.slots.counted.loop;
  }

  std::string stage(const clang::Expr* index) const {
    return index == nullptr ? "" : "[" + text(*index, Binding::Sum) + "]";
  }

  std::string sum(const std::vector<const clang::Expr*>& summands) const {
    std::string result;
    for (const clang::Expr* summand : summands) {
      result += (result.empty() ? "" : " + ") + text(*summand, Binding::Sum);
    }
    return result;
  }

  /// tiles.w of tiles.w[row][k].
  std::string tile_text(const WarpOperand& operand) const {
    const clang::Expr* array = &element(operand);
    while (const auto* subscript =
               dyn_cast<clang::ArraySubscriptExpr>(array->IgnoreParenImpCasts())) {
      array = subscript->getBase();
    }
    return text(*array, Binding::Operand);
  }

  const clang::ArraySubscriptExpr& element(const WarpOperand& operand) const {
    const WarpMultiply& product = operands_.products.front();
    return *(&operand == &operands_.left ? product.left : product.right).element;
  }

  void declare_tile(const WarpOperand& operand, const Texts& texts) {
    auto type = operand.tile->getTypeSourceInfo()->getTypeLoc();
    const Span written = span({type.getBeginLoc(), type.getEndLoc()});
    replace(written, filled_in("unsigned " + tile_name(operand) + stage(operand.stages) +
                                   "[$tile_k / $depth][$tile_across * $parts * 8]",
                               texts));
    removal_.replaced(written);
    const auto aligned = align_tile(kernel_, element(operand), 16);
    std::ranges::copy(aligned ? *aligned : throw CannotWrite{}, std::back_inserter(edits_));
  }

  void declare_places(const WarpOperand& operand, const Texts& texts) {
    const auto begin = begin_of(kernel_, *operands_.statement);
    insert(begin ? *begin : throw CannotWrite{},
           filled_in("const int $rounded = $round_up($across, $tile_across);\n"
                     "const int $group = " +
                         operand.place->getNameAsString() + " / 8;\n",
                     texts));
  }

  // ---- the kernels before it --------------------------------------------------------------------

  /// The integers that splitting a matrix depends on, as the kernel has them.
  std::vector<const clang::ParmVarDecl*> integers(const WarpOperand& operand) const {
    std::vector<const clang::ParmVarDecl*> result;
    for (const clang::ParmVarDecl* parameter : {operands_.depth, operand.across, operand.pitch}) {
      if (std::ranges::find(result, parameter) == result.end()) {
        result.push_back(parameter);
      }
    }
    return result;
  }

  /// Names that both kernels use.
  Texts split_names() {
    Texts names;
    for (const char* name : {"row", "rows", "k", "i", "part", "values", "packed", "words"}) {
      names[name] = names_.fresh(std::string("split_") + name);
    }
    return names;
  }

  std::string split_kernel(const WarpOperand& operand, Texts texts) const {
    const Texts& known = operand_texts_.at(&operand);
    texts.insert(known.begin(), known.end());
    texts["coordinates"] = filled_in(
        operand.k_along_rows ? split_texts::along_rows : split_texts::along_columns, texts);
    const std::string pitch = operand.pitch->getNameAsString();
    texts["element"] = filled_in(operand.k_along_rows ? "$matrix[$row * " + pitch + " + $k + $i]"
                                                      : "$matrix[($k + $i) * " + pitch + " + $row]",
                                 texts);
    texts["pack"] = filled_in(
        operands_.type->numbers == 1 ? split_texts::pack_one : split_texts::pack_pair, texts);
    for (const clang::ParmVarDecl* integer : integers(operand)) {
      texts["parameters"] += (texts["parameters"].empty() ? "" : ", ") +
                             declaration(kernel_, *integer, integer->getNameAsString());
    }
    return filled_in(split_texts::split_text, texts);
  }

  // ---- the entry --------------------------------------------------------------------------------

  std::string argument(const clang::ParmVarDecl& parameter) const {
    return text_of(kernel_, present(launch_.arguments[parameter.getFunctionScopeIndex()]));
  }

  /// How many bytes an operand's words take, in the names of `integers`.
  std::string bytes(const WarpOperand& operand, const std::string& across,
                    const std::string& depth) const {
    Texts texts = operand_texts_.at(&operand);
    texts["across"] = across;
    texts["limit"] = depth;
    texts["numbers"] = number(operands_.type->numbers);
    return filled_in("sizeof(unsigned) * $parts * $round_up($across, $tile_across) * "
                     "$round_up($limit, $tile_k) / $numbers",
                     texts);
  }

  /// The words begin behind what the workspace holds already, the right operand's behind the left
  /// one's.
  void write_entry() {
    const clang::FunctionDecl& entry = graph_.entry();
    const auto& workspace = present(workspace_function(kernel_, entry));
    const Span returned = span(present(bytes_returned(workspace)).getSourceRange());
    const std::string begin = names_.fresh(operands_.function->getNameAsString() + "_words");
    std::string parameters;
    std::string arguments;
    for (const clang::ParmVarDecl* parameter : workspace.parameters()) {
      const bool first = parameters.empty();
      parameters +=
          (first ? "" : ", ") + declaration(kernel_, *parameter, parameter->getNameAsString());
      arguments += (first ? "" : ", ") + parameter->getNameAsString();
    }
    const auto place = offset_before(kernel_, workspace);
    insert(place ? *place : throw CannotWrite{},
           "// Where in the workspace the operands of " + operands_.function->getNameAsString() +
               " begin, in bytes: where a line of the cache does.\nstatic size_t " + begin + "(" +
               parameters + ") { return (" + render(kernel_, returned) +
               " + 127) / 128 * 128; }\n\n");
    replace(returned, begin + "(" + arguments + ")" + sizes(workspace));
    write_launches(begin);
  }

  std::string sizes(const clang::FunctionDecl& workspace) const {
    const auto size = [&](const clang::ParmVarDecl& side) {
      const clang::Expr* given = launch_.arguments[side.getFunctionScopeIndex()];
      const auto* parameter = dyn_cast_or_null<clang::ParmVarDecl>(variable_of(given));
      return present(parameter_of_workspace(graph_.entry(), workspace, present(parameter)))
          .getNameAsString();
    };
    std::string result;
    for (const WarpOperand* operand : {&operands_.left, &operands_.right}) {
      result += " + " + bytes(*operand, size(*operand->across), size(*operands_.depth));
    }
    return result;
  }

  void write_launches(const std::string& begin) {
    const clang::FunctionDecl& entry = graph_.entry();
    std::string integers_given;
    const clang::ParmVarDecl* workspace = nullptr;
    for (const clang::ParmVarDecl* parameter : entry.parameters()) {
      if (parameter->getType()->isIntegerType()) {
        integers_given += (integers_given.empty() ? "" : ", ") + parameter->getNameAsString();
      }
      workspace = parameter->getType()->isVoidPointerType() ? parameter : workspace;
    }
    std::string before =
        "unsigned *" + words(operands_.left) +
        " = reinterpret_cast<unsigned *>(static_cast<char *>(" +
        present(workspace).getNameAsString() + ") + " + begin + "(" + integers_given +
        "));\nunsigned *" + words(operands_.right) + " = " + words(operands_.left) + " + " +
        bytes(operands_.left, argument(*operands_.left.across), argument(*operands_.depth)) +
        " / sizeof(unsigned);\n";
    for (const WarpOperand* operand : {&operands_.left, &operands_.right}) {
      before += split_launch(*operand);
      replace(span(launch_.arguments[operand->matrix->getFunctionScopeIndex()]->getSourceRange()),
              words(*operand));
    }
    insert(checked(span_of(kernel_, *launch_.call)).begin, before);
  }

  std::string words(const WarpOperand& operand) const {
    return operand_texts_.at(&operand).at("passed");
  }

  std::string split_launch(const WarpOperand& operand) const {
    Texts texts = operand_texts_.at(&operand);
    texts["across"] = argument(*operand.across);
    texts["limit"] = argument(*operands_.depth);
    std::string arguments = argument(*operand.matrix) + ", " + words(operand);
    for (const clang::ParmVarDecl* integer : integers(operand)) {
      arguments += ", " + argument(*integer);
    }
    const std::string stream =
        launch_.stream == nullptr ? "" : ", 0, " + text_of(kernel_, *launch_.stream);
    return texts.at("split") + "<<<" +
           filled_in(operand.k_along_rows ? split_texts::grid_along_rows
                                          : split_texts::grid_along_columns,
                     texts) +
           ", 256" + stream + ">>>(" + arguments + ");\n";
  }

  const Kernel& kernel_;
  const DependenceGraph& graph_;
  const WarpOperands& operands_;
  const ThreadBlock& block_;
  const Launch& launch_;
  LeafHelpers helpers_;
  Names names_;
  Removal removal_;
  Texts texts_;
  std::map<const WarpOperand*, Texts> operand_texts_;
  std::string copies_; // constants
  std::vector<Edit> edits_;
};

class SplitOperands : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "split_operands",
        .summary = "splits the matrices that tensor cores multiply into parts before the launch, "
                   "as ldmatrix loads them: a float is split once, and copied 16 bytes at a time",
        .before = "w_parts = w[..][..], split;  x_parts = x[..][..], split;  mma_bf16(..);",
        .after = "split_w<<<..>>>(W, words);  split_x<<<..>>>(X, words);\n"
                 "  ldmatrix_x4(w_parts, ..);  ldmatrix_x4(x_parts, ..);  mma_bf16(..);",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const auto graph = DependenceGraph::of(kernel);
    for (const ThreadBlock& block : thread_blocks(kernel)) {
      const auto operands = warp_operands(kernel, block);
      const Launch* launch = operands && graph ? only_launch(*graph, *block.function) : nullptr;
      auto edits =
          launch == nullptr ? std::nullopt : written(kernel, *graph, *operands, block, *launch);
      if (edits && computes_the_same(kernel, *edits)) {
        result.push_back(
            {operands->products.front().k.name + " split beforehand", std::move(*edits)});
      }
    }
    return result;
  }

  /// For the product with the largest tile; two parts of bf16, which nothing overflows.
  std::vector<Gene> preparation(const Kernel& kernel) const override {
    std::vector<Gene> result;
    std::int64_t most = 0;
    for (const ThreadBlock& block : thread_blocks(kernel)) {
      for (const ProductCore& core : product_cores(kernel, *block.function)) {
        const std::int64_t products = block.threads * products_per_step(kernel, core);
        if (products > most) {
          most = products;
          result = {{std::string(tensorise().about().name), core.k.name + " bf16x3"}};
        }
      }
    }
    return result;
  }

private:
  static const Launch* only_launch(const DependenceGraph& graph,
                                   const clang::FunctionDecl& function) {
    const Launch* found = nullptr;
    for (const Launch& launch : graph.launches()) {
      if (launch.kernel == &function) {
        if (found != nullptr) {
          return nullptr;
        }
        found = &launch;
      }
    }
    return found;
  }

  static std::optional<std::vector<Edit>> written(const Kernel& kernel,
                                                  const DependenceGraph& graph,
                                                  const WarpOperands& operands,
                                                  const ThreadBlock& block, const Launch& launch) {
    try {
      return Splitting(kernel, graph, operands, block, launch).edits();
    } catch (const CannotWrite&) {
      return std::nullopt;
    }
  }
};

} // namespace

const Mutator& split_operands() {
  static const SplitOperands mutator;
  return mutator;
}

} // namespace evo
