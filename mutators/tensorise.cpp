// Computes the core of a matrix product by warps on tensor cores, each float split into parts of a
// short type in registers; and changes the type or the number of parts of such a core.
//
//   before                              after "gemm/k bf16x3"
//   for (k = 0; k < K; ++k)             for (k = 0; k < K; k += 16) {
//     for (i = 0; i < M; ++i)             for (j = 0; j < N; j += 2)
//       for (j = 0; j < N; ++j)             x_parts[j / 2] = x[..][fragment_col + j], split
//         sum[i][j] +=                    for (i = 0; i < M; i += 2) {
//             w[row + i][k] *               w_parts = w[row + i][..] and w[row + i + 1][..], split
//             x[k][col + j];                for (the products of parts, the smallest first)
//                                             for (j = 0; j < N; j += 2)
//                                               mma_bf16(sum[i .. i + 1][j .. j + 1],
//                                                        w_parts[..], x_parts[j / 2][..]);
//                                         }
//                                       }
//
// The accumulators stay where they are, and with them the epilogue and all other parts. bf16x1,
// bf16x3, bf16x6, fp16x1, fp16x3, tf32x1 and tf32x3 say in how many products of which type; the
// number of parts is a constant. fp16 is not scaled: beyond 65504 it overflows, and what lies below
// 2^-24 is lost.
//
// Precondition: a target from sm_80 on; a one-dimensional block of whole warps; a core as in
// analysis/product_core.hpp with an even number of rows and columns, k in multiples of what one
// instruction takes; and accumulators that lie as those of mma.sync.m16n8 do: lane l of a warp has
// the rows l / 4 + 8 i and the columns 2 (l % 4) + 8 (j / 2) + j % 2 of the warp's tile, evaluated
// for all threads and elements (what "lanes 8x4", "groups 1 in warps" of rows and "groups 2 in
// warps" of columns make, see remap_threads.cpp), also under half and twice the tile's constants,
// since those may change later. The column that a lane loads for others is its own, less where its
// accumulators begin, plus l / 4. That all of this gives the same sums of products without races is
// proved by running the kernel, with products of matrices that do not round. The sums are added in
// another order, and what the parts leave out of a float is lost.
//
// Expected gain: many times the arithmetic of FFMA, even for three products. Shared memory is free
// of bank conflicts where, counted in floats, a row of x or of a transposed w is 4 or 12 beyond a
// multiple of 16 long (for tf32: 8 beyond a multiple of 16), and with w not transposed, loaded two
// floats at a time, 8 beyond one: pad by 4 or 8.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ParentMapContext.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/constants.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/product_core.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/constant_placement.hpp"
#include "mutators/leaf_helpers.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"
#include "mutators/retyping.hpp"
#include "mutators/target.hpp"
#include "mutators/tensor_type.hpp"
#include "mutators/thread_block.hpp"
#include "mutators/warp_product.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::int64_t warp_size = 32;

class References : public SyntaxVisitor {
public:
  bool VisitDeclRefExpr(clang::DeclRefExpr* reference) override {
    found.push_back(reference);
    return true;
  }
  std::vector<const clang::DeclRefExpr*> found;
};

std::vector<const clang::DeclRefExpr*> references_in(const clang::Expr& expr) {
  References references;
  references.TraverseStmt(const_cast<clang::Expr*>(&expr));
  return references.found;
}

/// Where in its warp's tile a lane has an element, along one coordinate.
std::int64_t own_row(std::int64_t lane, std::int64_t i) {
  return lane / 4 + 8 * i;
}
std::int64_t own_column(std::int64_t lane, std::int64_t j) {
  return lane % 4 * 2 + j / 2 * 8 + j % 2;
}

/// Where the accumulators of one core's threads lie.
class Accumulators {
public:
  Accumulators(const Kernel& kernel, const ThreadBlock& block, const ProductCore& core)
      : kernel_(kernel), block_(block), core_(core) {}

  /// The variable that places a factor's elements by the thread; nullptr where several do.
  const clang::VarDecl* placing(const Factor& factor) const {
    return placing_local(kernel_, block_, *factor.load);
  }

  /// Whether they lie as those of mma.sync do, under these values of constants.
  bool fit(const Assignment& constants) const {
    return fits(core_.left, core_.rows, own_row, constants) &&
           fits(core_.right, core_.columns, own_column, constants);
  }

private:
  using Owned = std::int64_t (*)(std::int64_t lane, std::int64_t element);

  bool fits(const Factor& factor, const CountedLoop& loop, Owned owned,
            const Assignment& constants) const {
    Evaluator evaluator(kernel_, constants);
    const auto elements = evaluator.value(*loop.limit);
    const auto* count = std::get_if<std::int64_t>(&elements);
    const clang::VarDecl* variable = placing(factor);
    if (count == nullptr || variable == nullptr) {
      return false;
    }
    for (const clang::DeclRefExpr* reference : references_in(*factor.load)) {
      for (std::int64_t i = 0; reference->getDecl() == variable && i < *count; ++i) {
        if (!fits(sum_around(kernel_, *reference), factor, i, owned, constants)) {
          return false;
        }
      }
    }
    return true;
  }

  bool fits(const clang::Expr& place, const Factor& factor, std::int64_t i, Owned owned,
            Assignment values) const {
    for (const clang::DeclRefExpr* reference : references_in(place)) {
      const auto* other = dyn_cast<clang::VarDecl>(reference->getDecl());
      if (other != nullptr && other->hasLocalStorage() && !other->getType().isConstQualified()) {
        values[other] = other == factor.counter ? i : 0;
      }
    }
    Evaluator evaluator(kernel_, values);
    const auto places = thread_values(evaluator, block_, place);
    for (std::size_t thread = 0; places && thread < places->size(); ++thread) {
      const std::size_t lane = thread % warp_size;
      const std::int64_t first = (*places)[thread - lane] - owned(0, i);
      if ((*places)[thread] - first != owned(static_cast<std::int64_t>(lane), i)) {
        return false;
      }
    }
    return places && follows_first(*places, place, factor, values, owned(0, i));
  }

  /// Whether the first lane's elements are as far apart as they should be.
  bool follows_first(const std::vector<std::int64_t>& places, const clang::Expr& place,
                     const Factor& factor, Assignment values, std::int64_t distance) const {
    values[factor.counter] = 0;
    Evaluator evaluator(kernel_, values);
    const auto firsts = thread_values(evaluator, block_, place);
    return firsts && places[0] - (*firsts)[0] == distance;
  }

  const Kernel& kernel_;
  const ThreadBlock& block_;
  const ProductCore& core_;
};

/// The constants that an expression is made of, also through others.
void add_constants(const clang::Expr& expr, std::set<const clang::VarDecl*>& constants) {
  for (const clang::VarDecl* constant : mentioned_constants(expr)) {
    if (constants.insert(constant).second && constant->hasInit()) {
      add_constants(*constant->getInit(), constants);
    }
  }
}

bool has_tensor_cores(const Target& target) {
  return std::stoi(target.arch.substr(target.arch.find('_') + 1)) >= 80;
}

/// One family of rewrites: of the cores in one kernel that add to the same accumulators.
class Tensorisation {
public:
  Tensorisation(const Kernel& kernel, const ThreadBlock& block, std::vector<ProductCore> cores,
                ThreadExchange& exchange)
      : kernel_(kernel), block_(block), cores_(std::move(cores)), exchange_(exchange) {}

  /// What gives threads the accumulators of mma.sync, in tiles deep enough for every type.
  std::vector<Gene> preparation() const {
    const ProductCore& core = cores_.front();
    const Accumulators accumulators(kernel_, block_, core);
    const clang::VarDecl* row = accumulators.placing(core.left);
    const clang::VarDecl* column = accumulators.placing(core.right);
    if (row == nullptr || column == nullptr) {
      return {};
    }
    const std::string function = block_.function->getNameAsString() + "/";
    const auto groups = [&](const clang::VarDecl& place, const char* size) {
      return Gene{std::string(remap_threads().about().name),
                  function + place.getNameAsString() + " groups " + size + " in warps"};
    };
    std::vector<Gene> result;
    const clang::VarDecl* depth = variable_of(core.k.counted.limit);
    if (depth != nullptr && *trip_count(kernel_, core.k.counted) % deepest() != 0) {
      result.push_back({std::string(reshape_tile().about().name),
                        function + depth->getNameAsString() + " " + std::to_string(deepest())});
    }
    result.push_back({std::string(remap_threads().about().name), function + "lanes 8x4"});
    result.push_back(groups(*row, "1"));
    result.push_back(groups(*column, "2"));
    return result;
  }

  std::vector<Rewrite> rewrites() {
    std::vector<Rewrite> result;
    if (!are_in_place()) {
      return result;
    }
    std::set<std::int64_t> proved; // by what makes the text differ, apart from names
    for (const TensorType& type : tensor_types()) {
      for (std::int64_t parts = 1; parts <= type.most_parts && divides(type); ++parts) {
        auto edits = with(type, parts);
        if (!edits || (proved.insert(type.numbers).second && !exchange_.keeps_outputs(*edits))) {
          return {};
        }
        result.push_back(
            {cores_.front().k.name + " " + strategy_name(type, parts), std::move(*edits)});
      }
    }
    return result;
  }

private:
  static std::int64_t deepest() {
    return std::ranges::max_element(tensor_types(), {}, &TensorType::depth)->depth;
  }

  /// Under all values that the tile's constants may have next, and that leave the file valid.
  bool are_in_place() {
    const clang::VarDecl* column =
        Accumulators(kernel_, block_, cores_.front()).placing(cores_.front().right);
    column_ = column;
    const bool fit = column != nullptr && block_.threads % warp_size == 0 &&
                     std::ranges::all_of(cores_, [&](const ProductCore& core) {
                       const Accumulators accumulators(kernel_, block_, core);
                       return is_even(core) && accumulators.placing(core.right) == column &&
                              accumulators.fit({});
                     });
    return fit && std::ranges::all_of(neighbours(), [&](const Assignment& values) {
             return Accumulators(kernel_, block_, cores_.front()).fit(values);
           });
  }

  bool is_even(const ProductCore& core) const {
    return *trip_count(kernel_, core.rows) % 2 == 0 && *trip_count(kernel_, core.columns) % 2 == 0;
  }

  bool divides(const TensorType& type) const {
    return std::ranges::all_of(cores_, [&](const ProductCore& core) {
      return *trip_count(kernel_, core.k.counted) % type.depth == 0;
    });
  }

  std::vector<Assignment> neighbours() const {
    std::set<const clang::VarDecl*> shaping;
    if (block_.named != nullptr) {
      shaping.insert(block_.named);
      add_constants(*block_.named->getInit(), shaping);
    }
    const ConstantRules rules = find_rules(kernel_);
    std::vector<Assignment> result;
    for (const Constant& constant : find_constants(kernel_)) {
      if (!constant.free || !shaping.contains(constant.declaration)) {
        continue;
      }
      for (const std::int64_t value : {constant.value / 2, constant.value * 2}) {
        Evaluator evaluator(kernel_, {{constant.declaration, value}});
        if (value > 0 && !check_rules(rules, evaluator)) {
          result.push_back({{constant.declaration, value}});
        }
      }
    }
    return result;
  }

  std::optional<std::vector<Edit>> with(const TensorType& type, std::int64_t parts) const {
    LeafHelpers helpers(kernel_);
    Names names(kernel_);
    const std::string function = block_.function->getNameAsString();
    WarpProductNames called{.lane = "",
                            .fragment_column = names.fresh("fragment_col"),
                            .parts = names.fresh(function + "_parts"),
                            .left_parts = names.fresh(tile_name(cores_.front().left) + "_parts"),
                            .right_parts = names.fresh(tile_name(cores_.front().right) + "_parts"),
                            .depth = names.fresh("depth"),
                            .slot = names.fresh("slot"),
                            .part = names.fresh("part"),
                            .order = names.fresh("order"),
                            .low = names.fresh(type.numbers == 1 ? "value" : "low"),
                            .high = names.fresh("high"),
                            .tile = names.fresh("tile"),
                            .multiply = helpers.use(type.multiply),
                            .round = helpers.use(type.round),
                            .take_low =
                                type.numbers == 1 ? std::string(type.low) : helpers.use(type.low),
                            .take_high = type.numbers == 1 ? "" : helpers.use(type.high)};
    auto edits = definitions(called, names);
    const auto constants = constant(called.parts, parts, type);
    if (!edits || !constants) {
      return std::nullopt;
    }
    edits->push_back(*constants);
    for (const ProductCore& core : cores_) {
      const auto begin = begin_of(kernel_, core.k);
      const auto span = span_of(kernel_, *core.k.counted.loop);
      const auto text = warp_product(kernel_, core, *column_, type, called);
      if (!begin || !span || !text) {
        return std::nullopt;
      }
      edits->push_back({*begin, span->end - *begin, *text});
    }
    std::ranges::move(helpers.edits(), std::back_inserter(*edits));
    sort_edits(*edits);
    return edits;
  }

  static std::string tile_name(const Factor& factor) {
    const Memory tile = memory_of(*factor.load);
    return tile.member != nullptr ? tile.member->getNameAsString()
                                  : tile.variable->getNameAsString();
  }

  /// The lane, where the kernel has no name for it, and the column that it loads.
  std::optional<std::vector<Edit>> definitions(WarpProductNames& called, Names& names) const {
    const clang::VarDecl* lane = lane_number(kernel_, block_);
    unsigned place = end_of_definition(*column_);
    std::string text;
    if (lane != nullptr) {
      called.lane = lane->getNameAsString();
      place = std::max(place, end_of_definition(*lane));
    } else {
      called.lane = names.fresh("lane");
      text = "const int " + called.lane + " = threadIdx.x % 32;\n";
    }
    const auto begin = begin_of(kernel_, cores_.front().k);
    if (place == 0 || !begin || *begin < place) {
      return std::nullopt;
    }
    text += "const int " + called.fragment_column + " = " + column_->getNameAsString() + " - " +
            called.lane + " % 4 * 2 + " + called.lane + " / 4;";
    return std::vector<Edit>{{place, 0, "\n" + text}};
  }

  /// 0 in a macro.
  unsigned end_of_definition(const clang::VarDecl& variable) const {
    const auto parents = kernel_.ast().getParents(variable);
    const auto* definition = parents.empty() ? nullptr : parents[0].get<clang::DeclStmt>();
    const auto span = definition == nullptr ? std::nullopt : span_of(kernel_, *definition);
    return span ? span->end : 0;
  }

  /// How many parts there are, and what must stay so for the cores.
  std::optional<Edit> constant(const std::string& name, std::int64_t parts,
                               const TensorType& type) const {
    const ProductCore& core = cores_.front();
    std::vector<const clang::VarDecl*> constants;
    std::vector<std::string> asserted;
    for (const auto& [limit, divisor] :
         {std::pair(core.k.counted.limit, type.depth), std::pair(core.rows.limit, std::int64_t{2}),
          std::pair(core.columns.limit, std::int64_t{2})}) {
      const auto text = operand(kernel_, *limit, Binding::Product);
      if (!text) {
        return std::nullopt;
      }
      asserted.push_back(*text + " % " + std::to_string(divisor) + " == 0");
      std::ranges::copy(mentioned_constants(*limit), std::back_inserter(constants));
    }
    const auto place = offset_behind(kernel_, constants, *block_.function);
    return place ? std::optional(Edit{*place, 0,
                                      "constexpr int " + name + " = " + std::to_string(parts) +
                                          ";\nstatic_assert(" + asserted[0] + " && " + asserted[1] +
                                          " && " + asserted[2] + ");\n"})
                 : std::nullopt;
  }

  const Kernel& kernel_;
  const ThreadBlock& block_;
  std::vector<ProductCore> cores_;
  ThreadExchange& exchange_;
  const clang::VarDecl* column_ = nullptr;
};

class Tensorise : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "tensorise",
        .summary = "multiplies by warps on tensor cores, each float split into parts of bf16, fp16 "
                   "or tf32: many times the arithmetic, rounded otherwise",
        .before = "for (k) for (i) for (j) sum[i][j] += w[row + i][k] * x[k][col + j];",
        .after = "for (k += 16) for (i += 2) for (parts) for (j += 2)\n"
                 "  mma_bf16(sum[i .. i + 1][j .. j + 1], w_parts[..], x_parts[j / 2][..]);",
        .keeps_order = false,
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    if (!has_tensor_cores(kernel.target())) {
      return result;
    }
    ThreadExchange exchange(kernel);
    for (const ThreadBlock& block : thread_blocks(kernel)) {
      for (auto& cores : by_accumulators(product_cores(kernel, *block.function))) {
        auto rewrites = Tensorisation(kernel, block, std::move(cores), exchange).rewrites();
        std::ranges::move(rewrites, std::back_inserter(result));
      }
      auto others = retyped_products(kernel, *block.function, exchange);
      std::ranges::move(others, std::back_inserter(result));
    }
    return result;
  }

  /// For the product with the largest tile, which is worth it.
  std::vector<Gene> preparation(const Kernel& kernel) const override {
    ThreadExchange exchange(kernel);
    std::vector<Gene> result;
    std::int64_t most = 0;
    for (const ThreadBlock& block : thread_blocks(kernel)) {
      for (auto& cores : by_accumulators(product_cores(kernel, *block.function))) {
        const std::int64_t products = block.threads * products_per_step(kernel, cores.front());
        if (products > most) {
          most = products;
          result = Tensorisation(kernel, block, std::move(cores), exchange).preparation();
        }
      }
    }
    return has_tensor_cores(kernel.target()) ? result : std::vector<Gene>{};
  }

private:
  static std::vector<std::vector<ProductCore>> by_accumulators(std::vector<ProductCore> cores) {
    std::vector<std::vector<ProductCore>> result;
    for (ProductCore& core : cores) {
      const auto known = std::ranges::find_if(
          result, [&](const auto& others) { return others.front().sum == core.sum; });
      if (known == result.end()) {
        result.push_back({std::move(core)});
      } else {
        known->push_back(std::move(core));
      }
    }
    return result;
  }
};

} // namespace

const Mutator& tensorise() {
  static const Tensorise mutator;
  return mutator;
}

} // namespace evo
