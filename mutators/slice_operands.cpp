// Multiplies by warps on the integer units of tensor cores: both matrices are cut into slices of
// int8 before the launch, and the products of slices are added up without rounding.
//
//   before, after tensorise                   after "gemm/k int8x6"
//   __global__ void gemm(W, X, Y, d) {        __global__ void gemm(W, X, Y, d, w_units, x_units) {
//                                               int sums[..][..][4] = {};
//     for (k0 = 0; k0 < d; k0 += K) {           for (k0 = 0; k0 < products * k_depth; k0 += K) {
//       w[row][k] = inside ?                      w[panel][word] = four words of the slice of W
//           W[...] : 0;                               that product k0 / k_depth is of
//       x[k][col] = ...                           x[panel][word] = ...
//       for (k += 16)                             for (k += 32)
//         mma_bf16(sum.., w_parts, x_parts)         ldmatrix_x4(..); mma_int8(sums.., w, x)
//                                                 after the last product of an order:
//                                                   next_order_int8(sums, left_over)
//     }                                         }
//                                               sum = sum_int8(sums, left_over) * units
//                                             __global__ void split_w(W, words, units, ...);
//   gemm<<<...>>>(W, X, Y, d);                split_w<<<...>>>(W, w_words, w_units, ...);
//                                             split_x<<<...>>>(X, x_words, x_units, ...);
//                                             gemm<<<...>>>(w_words, x_words, Y, d, ...);
//
// A row of W, and a column of X, is divided by its magnitude, so that its numbers are integers of
// three digits to the base of 256. Of the products of digits, those are added that count most: the
// six with at most two lower places (of two digits: three with at most one), the lowest order
// first. Sums are exact: of 4608 products of digits none overflows an int. Between two orders they
// are divided by 256, and the byte left over is kept, so that one set of integers and a quarter of
// it are all the registers that they take. What a slice holds lies as in split_operands.cpp.
//
// Precondition: as split_operands, one product in one loop over tiles of one stage, which begins at
// 0; tiles in multiples of 32 along k; an even number of pairs of columns. Legal if both files
// compute the same polynomials of their inputs (analysis/meaning.hpp), where the highest digit
// stands for all of a number. The sums are rounded in other places.
//
// Expected gain: int8 has twice the rate of fp16 on most cards, and four times that of bf16 and
// fp16 with float32 sums on GeForce cards: six products then cost as much as three there would, or
// half of it. The error is that of numbers with 24 bits below their row's magnitude, whatever the
// sums.
#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/edited.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/scaled_words.hpp"
#include "mutators/slice_texts.hpp"

namespace evo {
namespace {

constexpr std::int64_t depth = 32; // k of one mma.sync

/// Words that hold slices of int8.
class Slicing : public ScaledWords {
public:
  Slicing(const Kernel& kernel, const DependenceGraph& graph, const WarpOperands& operands,
          const ThreadBlock& block, const Launch& launch, const DeviceLoop& tiles,
          std::int64_t slices)
      : ScaledWords(kernel, graph, operands, block, launch, &tiles), count_(slices) {}

private:
  Texts form() override {
    const std::string function = operands_.function->getNameAsString();
    Texts texts{{"depth", number(depth)},
                {"chunk", number(depth / 2)},
                {"panel_words", "8"},
                {"row_words", "8"},
                {"count", number(count_)},
                {"left_list", list(true)},
                {"right_list", list(false)},
                {"slice", helpers_.use("slice_int8")},
                {"load_matrices", helpers_.use("ldmatrix_x4")},
                {"multiply", helpers_.use("mma_int8")},
                {"next_order", helpers_.use("next_order_int8")},
                {"to_floats", helpers_.use("sum_int8")}};
    for (const char* name : {"slices", "products", "left_slices", "right_slices"}) {
      texts[name] = names_.fresh(function + "_" + name);
    }
    for (const char* name : {"k_depth", "sums", "left_over", "tile"}) {
      texts[name] = names_.fresh(name);
    }
    texts["scaled"] = names_.fresh("split_scaled");
    texts.merge(scaling("scale_int8", "unit_int8"));
    return texts;
  }

  std::vector<std::string_view> replaced_helpers() const override {
    const TensorType& type = *operands_.type;
    return {type.multiply, type.round, type.low, type.high};
  }

  /// The slices of one side of all products, the lowest order first, as a hexadecimal number.
  std::string list(bool left) const {
    std::string digits;
    for (std::int64_t order = count_ - 1; order >= 0; --order) {
      for (std::int64_t slice = 0; slice <= order; ++slice) {
        digits.insert(0, number(left ? order - slice : slice));
      }
    }
    return "0x" + digits;
  }

  std::string first_panel(const WarpOperand& operand, const std::string& k) const override {
    Texts texts = texts_;
    texts["k"] = k;
    texts["list"] = texts.at(&operand == &operands_.left ? "left_slices" : "right_slices");
    return filled_in(slice_texts::first_panel_text, texts);
  }

  void write_products() override {
    constants_ += filled_in(slice_texts::constants_text, texts_);
    Texts texts = places();
    texts["left_parts"] = product().left.registers->getNameAsString();
    texts["right_parts"] = product().right.registers->getNameAsString();
    texts["k"] = product().k.counted.counter->getNameAsString();
    texts["k_type"] = product().k.counted.counter->getType().getUnqualifiedType().getAsString();
    texts["k_limit"] = text(*product().k.counted.limit, Binding::Sum);
    texts["limit"] = operands_.depth->getNameAsString();
    texts["is_end_of_order"] = ends_of_orders();
    write_loop(texts);
  }

  /// Where the sums of an order are complete but for the last one.
  std::string ends_of_orders() const {
    std::string result;
    std::int64_t products = 0;
    for (std::int64_t order = count_ - 1; order > 0; --order) {
      products += order + 1;
      result += (result.empty() ? "" : " || ") + tiles_->counted.counter->getNameAsString() +
                " + " + texts_.at("tile_k") + " == " + number(products) + " * " +
                texts_.at("k_depth");
    }
    return result;
  }

  void write_loop(const Texts& texts) {
    const auto begin = begin_of(kernel_, statement());
    insert(begin ? *begin : throw CannotWrite{}, filled_in(slice_texts::sums_text, texts));
    replace(span(tiles_->counted.limit->getSourceRange()),
            texts.at("products") + " * " + texts.at("k_depth"));
    replace_code(checked(span_of(kernel_, *product().k.counted.loop)),
                 filled_in(slice_texts::product_text, texts) +
                     filled_in(slice_texts::next_order_text, texts));
    write_results(slice_texts::result_text, texts);
  }

  std::string_view stores() const override { return slice_texts::stores_text; }
  std::string bytes() const override {
    return "sizeof(unsigned) * $slices * $round_up($across, $tile_across) * "
           "$round_up($limit, $tile_k) / 4";
  }

  std::int64_t count_;
};

class SliceOperands : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "slice_operands",
        .summary = "multiplies slices of int8 on tensor cores, three or two of each float, cut "
                   "before the launch; their sums are exact",
        .before = "for (k0 < d) { ...  mma_bf16(sum.., w_parts.., x_parts..); }",
        .after = "split_w<<<..>>>(W, words, units);  split_x<<<..>>>(X, words, units);\n"
                 "  for (k0 < products * k_depth) { ...  mma_int8(sums.., w, x); }",
        .keeps_order = false,
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const auto graph = DependenceGraph::of(kernel);
    for (const ThreadBlock& block : thread_blocks(kernel)) {
      const auto operands = warp_operands(kernel, block);
      const Launch* launch = operands && graph ? only_launch(*graph, *block.function) : nullptr;
      const DeviceLoop* tiles =
          launch == nullptr ? nullptr : loop_over_tiles(kernel, *operands, depth);
      bool proved = false;
      for (std::int64_t slices = 3; slices >= 2 && tiles != nullptr; --slices) {
        auto edits = Slicing(kernel, *graph, *operands, block, *launch, *tiles, slices).edits();
        proved = proved || (edits && computes_the_same(kernel, *edits));
        if (edits && proved) {
          result.push_back({operands->products.front().k.name + " int8x" +
                                std::to_string(slices * (slices + 1) / 2),
                            std::move(*edits)});
        }
      }
    }
    return result;
  }

  std::vector<Gene> preparation(const Kernel& kernel) const override {
    return largest_product_on_tensor_cores(kernel, depth);
  }
};

} // namespace

const Mutator& slice_operands() {
  static const SliceOperands mutator;
  return mutator;
}

} // namespace evo
