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
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/loop_nest.hpp"
#include "mutators/edited.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/scale_texts.hpp"
#include "mutators/scaled_words.hpp"
#include "mutators/split_texts.hpp"

namespace evo {
namespace {

/// Words that hold the parts of floats, in the type that the kernel multiplies in already.
class Splitting : public ScaledWords {
public:
  using ScaledWords::ScaledWords;

private:
  Texts form() override {
    const TensorType& type = *operands_.type;
    const std::string parts = operands_.parts->getNameAsString();
    Texts texts{{"depth", number(type.depth)},
                {"chunk", number(type.depth / 2)},
                {"numbers", number(type.numbers)},
                {"parts", parts},
                {"panel_words", parts + " * 8"},
                {"row_words", "(" + parts + " * 8)"},
                {"round", helpers_.use(type.round)},
                {"take_low", type.numbers == 1 ? std::string(type.low) : helpers_.use(type.low)},
                {"take_high", type.numbers == 1 ? "" : helpers_.use(type.high)}};
    if (tiles_ != nullptr) {
      texts.merge(scaling("scale_fp16", "unit_fp16"));
    }
    return texts;
  }

  void write_products() override {
    for (const WarpMultiply& product : operands_.products) {
      write_read(product, product.left, operands_.left);
      write_read(product, product.right, operands_.right);
    }
    if (tiles_ != nullptr) {
      write_results(scale_texts::result_text, places());
    }
  }

  void write_read(const WarpMultiply& product, const WarpRead& read, const WarpOperand& operand) {
    const bool is_left = &operand == &operands_.left;
    const bool in_pairs = !is_left && can_load_pairs(read);
    Texts texts = operand_texts_.at(&operand);
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

  std::string_view stores() const override { return split_texts::stores_text; }

  std::string pass(const WarpOperand& operand, Texts texts) const override {
    texts["pack"] = filled_in(
        operands_.type->numbers == 1 ? split_texts::pack_one : split_texts::pack_pair, texts);
    if (tiles_ != nullptr) {
      return ScaledWords::pass(operand, std::move(texts));
    }
    texts["coordinates"] = filled_in(
        operand.k_along_rows ? split_texts::along_rows : split_texts::along_columns, texts);
    texts["stores"] = filled_in(stores(), texts);
    return filled_in(split_texts::split_text, texts);
  }
  std::string grid(const WarpOperand& operand) const override {
    return tiles_ != nullptr      ? ScaledWords::grid(operand)
           : operand.k_along_rows ? std::string(split_texts::grid_along_rows)
                                  : std::string(split_texts::grid_along_columns);
  }
  std::string threads(const WarpOperand& operand) const override {
    return tiles_ != nullptr ? ScaledWords::threads(operand) : "256";
  }
  std::string bytes() const override {
    return "sizeof(unsigned) * $parts * $round_up($across, $tile_across) * "
           "$round_up($limit, $tile_k) / $numbers";
  }
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
      if (launch == nullptr) {
        continue;
      }
      const std::string label = operands->products.front().k.name + " split beforehand";
      const DeviceLoop* tiles = operands->type->name == "fp16"
                                    ? loop_over_tiles(kernel, *operands, 1)
                                    : nullptr; // the other types have a float's exponents
      add(kernel, label, Splitting(kernel, *graph, *operands, block, *launch, nullptr).edits(),
          result);
      if (tiles != nullptr) {
        add(kernel, label + ", scaled",
            Splitting(kernel, *graph, *operands, block, *launch, tiles).edits(), result);
      }
    }
    return result;
  }

  std::vector<Gene> preparation(const Kernel& kernel) const override {
    return largest_product_on_tensor_cores(kernel, 1);
  }

private:
  static void add(const Kernel& kernel, const std::string& label,
                  std::optional<std::vector<Edit>> edits, std::vector<Rewrite>& result) {
    if (edits && computes_the_same(kernel, *edits)) {
      result.push_back({label, std::move(*edits)});
    }
  }
};

} // namespace

const Mutator& split_operands() {
  static const SplitOperands mutator;
  return mutator;
}

} // namespace evo
