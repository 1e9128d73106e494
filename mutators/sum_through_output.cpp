// Runs a reduction in pieces, each of which adds what it comes to to the output in memory.
//
//   before                              after "gemm/k0 pieces of 1024"
//   float sum[M][N] = {};               for (piece = 0; piece < d; piece += gemm_piece) {
//   for (k0 = 0; k0 < d; k0 += K) {       const int piece_end = min(d, piece + gemm_piece);
//     ...                                 float sum[M][N] = {};
//   }                                     for (k0 = piece; k0 < piece_end; k0 += K) {
//   for (i ...)                             ...
//     for (j ...)                         }
//       if (inside)                       __syncthreads();
//         Y[...] = sum[i][j];             for (i ...) {
//                                           float so_far[N];
//                                           for (j ...)
//                                             so_far[j] = piece > 0 && inside ? Y[...] : 0.0f;
//                                           for (j ...)
//                                             if (inside)
//                                               Y[...] = so_far[j] + sum[i][j];
//                                         }
//                                       }
//
// A row's old values are all loaded before the first new one is stored, so that their loads
// overlap. A prologue that loads tiles ahead runs once per piece. The barrier keeps it from filling
// a tile that another thread still reads; a loop that ends in a barrier needs none. Wide stores
// load as wide. A file that sums in pieces already gets another length.
//
// Precondition: a reduction loop that counts from 0 to a size, or between two variables as
// split_tail leaves it, whose accumulators are defined in the same braces and stored by a nest of
// loops there, each element of the block's tile once (analysis/direct_epilogue.hpp), with nothing
// computed between. The length is a constant, and a multiple of the step. Legal if the files
// compute the same polynomials of their inputs, without a race, in pieces of one step
// (analysis/meaning.hpp). The sums are added in another order.
//
// It comes behind split_operands, before peel_edges (which leaves two reductions), and instead of
// fuse_epilogue and stage_epilogue, which want the epilogue for themselves; else where it likes.
//
// Expected gain: as for promote_sums (a short sum loses little to tensor cores, which truncate),
// but without a second set of registers: 1024 elements per piece cost one more pass over the
// results each, 3 to 6 % of the time.
#include <algorithm>
#include <array>
#include <utility>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/constants.hpp"
#include "mutators/analysis/direct_epilogue.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/loop_nest.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/stage_model.hpp"
#include "mutators/constant_placement.hpp"
#include "mutators/edited.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"
#include "mutators/tile_range.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::array<std::int64_t, 3> lengths{512, 1024, 2048}; // of a piece, in k

/// The one of the statements that defines a variable.
const clang::DeclStmt* definition_in(const clang::CompoundStmt& braces,
                                     const clang::VarDecl& variable) {
  for (const clang::Stmt* statement : braces.body()) {
    const auto* definition = dyn_cast<clang::DeclStmt>(statement);
    if (definition != nullptr && std::ranges::count(definition->decls(), &variable) != 0) {
      return definition;
    }
  }
  return nullptr;
}

/// The definition of the first accumulator.
const clang::DeclStmt* first_definition(const Stages& stages) {
  const clang::DeclStmt* first = nullptr;
  for (const clang::VarDecl* accumulator : stages.accumulators) {
    const clang::DeclStmt* definition = definition_in(*stages.parent, *accumulator);
    const bool earlier = definition != nullptr &&
                         (first == nullptr || definition->getBeginLoc() < first->getBeginLoc());
    first = earlier ? definition : first;
  }
  return first;
}

/// One reduction's rewrite. All of it throws CannotWrite where it cannot be written.
class Pieces {
public:
  Pieces(const Kernel& kernel, const Stages& stages, const CountedLoop& loop,
         const DirectEpilogue& epilogue)
      : kernel_(kernel), stages_(stages), loop_(loop), epilogue_(epilogue) {
    Names names(kernel);
    length_ = names.fresh(stages.kernel->getNameAsString() + "_piece");
    piece_ = names.fresh("piece");
    end_ = names.fresh(piece_ + "_end");
    so_far_ = names.fresh("so_far");
    vector_ = names.fresh(so_far_ + "_vector");
  }

  std::vector<Edit> edits(std::int64_t length) {
    edits_.clear();
    write_constant(length);
    write_loop_over_pieces();
    write_bounds();
    write_epilogue();
    sort_edits(edits_);
    return edits_;
  }

private:
  Span span(const clang::Stmt& code) const { return checked(span_of(kernel_, code)); }
  Span span(const clang::Expr& expr) const {
    return checked(span_of(kernel_, expr.getSourceRange()));
  }
  std::string text(const clang::Expr& expr, Binding binding) const {
    const auto found = operand(kernel_, expr, binding);
    return found ? *found : throw CannotWrite{};
  }
  void insert(unsigned offset, std::string text) { edits_.push_back({offset, 0, std::move(text)}); }
  void replace(const Span& at, std::string text) {
    edits_.push_back({at.begin, at.length(), std::move(text)});
  }

  void write_constant(std::int64_t length) {
    const clang::Expr& step = present(loop_.step);
    const auto place = offset_behind(kernel_, mentioned_constants(step), *stages_.kernel);
    insert(place ? *place : throw CannotWrite{},
           "constexpr int " + length_ + " = " + std::to_string(length) + ";\nstatic_assert(" +
               length_ + " % " + text(step, Binding::Operand) + " == 0);\n");
  }

  void write_loop_over_pieces() {
    const std::string limit = text(*loop_.limit, Binding::Sum);
    insert(span(present<clang::Stmt>(first_definition(stages_))).begin,
           "for (int " + piece_ + " = " + text(*loop_.start, Binding::Sum) + "; " + piece_ + " < " +
               limit + "; " + piece_ + " += " + length_ + ") {\nconst int " + end_ + " = min(" +
               limit + ", " + piece_ + " + " + length_ + ");\n");
    const StagePart& last = stages_.body.back();
    insert(span(*loop_.loop).end,
           stages_.tiles.empty() || last.role == Role::Barrier ? "" : "\n__syncthreads();\n");
    insert(span(*without_pragmas(epilogue_.nest)).end, "\n}\n");
  }

  /// Every tile that a piece loads lies in it.
  void write_bounds() {
    const clang::VarDecl& limit = present(variable_of(loop_.limit));
    if (constant_value(kernel_, *loop_.start) == 0) {
      const TileLoops loops{.loops = {loop_}, .limit = &limit, .step = loop_.step};
      std::ranges::move(count_tiles(kernel_, *stages_.kernel, loops, piece_, end_),
                        std::back_inserter(edits_));
    } else {
      rename(present(variable_of(loop_.start)), piece_);
      rename(limit, end_);
    }
  }

  /// Calls a bound of the reduction something else up to its end.
  void rename(const clang::VarDecl& bound, const std::string& name) {
    const unsigned begin = span(present<clang::Stmt>(first_definition(stages_))).begin;
    const Span reduction{begin, span(*loop_.loop).end};
    const auto uses = references(kernel_, bound);
    for (const Span& use : uses&& bound.isLocalVarDecl() ? *uses : throw CannotWrite{}) {
      if (reduction.contains(use.begin)) {
        replace(use, name);
      }
    }
  }

  // ---- the epilogue -----------------------------------------------------------------------------

  const CountedLoop& row_loop() const { return epilogue_.loops.back(); }

  void write_epilogue() {
    const CountedLoop& loop = row_loop();
    const clang::Stmt* around = parent_of(kernel_, *loop.loop);
    if (around != nullptr && clang::isa<clang::AttributedStmt>(around)) {
      around = parent_of(kernel_, *around);
    }
    if (!clang::isa_and_nonnull<clang::CompoundStmt>(around) || !has_a_slot_for_each_store()) {
      throw CannotWrite{};
    }
    for (const CountedLoop& nested : epilogue_.loops) {
      const bool marked = clang::isa<clang::AttributedStmt>(*parent_of(kernel_, *nested.loop));
      const std::string loads = &nested == &loop ? loads_of_a_row() : "";
      const auto begin = begin_of(kernel_, marked ? *parent_of(kernel_, *nested.loop)
                                                  : static_cast<const clang::Stmt&>(*nested.loop));
      insert(begin ? *begin : throw CannotWrite{}, loads + (marked ? "" : "#pragma unroll\n"));
    }
    for (const ResultStore& store : epilogue_.stores) {
      for (std::int64_t element = 0; element < store.width; ++element) {
        const clang::Expr& value = stored(store, element);
        replace(span(value), slot(store, element) + " + " + text(value, Binding::Sum));
      }
    }
  }

  /// A row's slots are numbered as its loop counts.
  bool has_a_slot_for_each_store() const {
    const CountedLoop& loop = row_loop();
    const auto limit = constant_value(kernel_, *loop.limit);
    return constant_value(kernel_, *loop.start) == 0 && limit && *limit % loop.step_value == 0 &&
           std::ranges::all_of(epilogue_.stores, [&](const ResultStore& store) {
             return store.offset >= 0 && store.offset + store.width <= loop.step_value;
           });
  }

  std::string slot(const ResultStore& store, std::int64_t element) const {
    const std::int64_t ahead = store.offset + element;
    return so_far_ + "[" + row_loop().counter->getNameAsString() +
           (ahead == 0 ? "" : " + " + std::to_string(ahead)) + "]";
  }

  /// What a store puts into an element: its value, or an argument of make_float2(...).
  const clang::Expr& stored(const ResultStore& store, std::int64_t element) const {
    if (store.width == 1) {
      return *store.value;
    }
    const auto* call = dyn_cast<clang::CallExpr>(store.value->IgnoreImplicit());
    const auto* callee = call == nullptr ? nullptr : call->getDirectCallee();
    if (callee == nullptr || std::cmp_not_equal(call->getNumArgs(), store.width) ||
        callee->getNameAsString() != "make_" + vector_type(store)) {
      throw CannotWrite{};
    }
    return *call->getArg(static_cast<unsigned>(element));
  }

  static std::string vector_type(const ResultStore& store) {
    return "float" + std::to_string(store.width);
  }

  std::string is_later_piece() const { return piece_ + " > " + text(*loop_.start, Binding::Sum); }

  std::string loads_of_a_row() const {
    const clang::ForStmt& loop = *row_loop().loop;
    const auto header = render(kernel_, {span(loop).begin, span(*loop.getBody()).begin});
    std::string definitions;
    for (const clang::DeclStmt* definition : epilogue_.definitions) {
      definitions += render(kernel_, span(static_cast<const clang::Stmt&>(*definition))) + "\n";
    }
    const std::string extent = text(*row_loop().limit, Binding::Sum);
    const auto guard = guard_of_the_only_store();
    const std::string row = "#pragma unroll\n" + header + "{\n" + definitions;
    return guard ? "float " + so_far_ + "[" + extent + "];\n" + row + guarded_load(*guard) + "}\n"
                 : "float " + so_far_ + "[" + extent + "] = {};\nif (" + is_later_piece() +
                       ") {\n" + row + loads_like_stores() + "\n}\n}\n";
  }

  /// The ifs around the action's only store, which is of one element; nullopt where it does more.
  std::optional<std::vector<const clang::Expr*>> guard_of_the_only_store() const {
    std::vector<const clang::Expr*> conditions;
    const clang::Stmt* action = epilogue_.action;
    while (action != epilogue_.stores.front().statement) {
      const auto* braces = dyn_cast<clang::CompoundStmt>(action);
      const auto* branch = dyn_cast<clang::IfStmt>(action);
      if (braces != nullptr && braces->size() == 1) {
        action = braces->body_front();
      } else if (branch != nullptr && branch->getElse() == nullptr) {
        conditions.push_back(branch->getCond());
        action = branch->getThen();
      } else {
        return std::nullopt;
      }
    }
    const bool single = epilogue_.stores.size() == 1 && epilogue_.stores.front().width == 1;
    return single ? std::optional(conditions) : std::nullopt;
  }

  std::string guarded_load(const std::vector<const clang::Expr*>& guard) const {
    const ResultStore& store = epilogue_.stores.front();
    std::string conditions = is_later_piece();
    for (const clang::Expr* condition : guard) {
      const auto* operation = dyn_cast<clang::BinaryOperator>(condition->IgnoreImplicit());
      const bool plain = operation != nullptr &&
                         (operation->isComparisonOp() || operation->getOpcode() == clang::BO_LAnd);
      const std::string asked = text_of(kernel_, *condition);
      conditions += " && " + (plain ? asked : "(" + asked + ")");
    }
    return slot(store, 0) + " = " + conditions + " ? " + text_of(kernel_, *store.element) +
           " : 0.0f;\n";
  }

  /// The action with loads where it stores.
  std::string loads_like_stores() const {
    std::vector<Edit> loads;
    for (const ResultStore& store : epilogue_.stores) {
      const Span at = span(*store.statement);
      loads.push_back({at.begin, at.length(), load(store)});
    }
    return render(kernel_, span(*epilogue_.action), loads);
  }

  std::string load(const ResultStore& store) const {
    const std::string element = text_of(kernel_, *store.element);
    if (store.width == 1) {
      return slot(store, 0) + " = " + element + ";";
    }
    const std::string type = "const " + vector_type(store);
    std::string result =
        type + " " + vector_ + " = *reinterpret_cast<" + type + " *>(&" + element + ");";
    for (std::int64_t i = 0; i < store.width; ++i) {
      result += "\n" + slot(store, i) + " = " + vector_ + "." + "xyzw"[i] + ";";
    }
    return result;
  }

  const Kernel& kernel_;
  const Stages& stages_;
  const CountedLoop& loop_;
  const DirectEpilogue& epilogue_;
  std::string length_, piece_, end_, so_far_, vector_;
  std::vector<Edit> edits_;
};

/// The constant that says how long pieces are, where the reduction runs in pieces already.
std::optional<Constant> known_length(const Kernel& kernel, const CountedLoop& reduction) {
  const auto pieces = loop_over_pieces(kernel, reduction);
  const clang::VarDecl* length =
      pieces && pieces->step != nullptr ? variable_of(pieces->step) : nullptr;
  const std::vector<Constant> all = find_constants(kernel);
  const auto found = std::ranges::find(all, length, &Constant::declaration);
  return length != nullptr && found != all.end() && found->free ? std::optional(*found)
                                                                : std::nullopt;
}

class SumThroughOutput : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "sum_through_output",
        .summary = "runs long sums in pieces of 512 to 2048 that add to the output in memory: "
                   "shorter chains of tensor cores' truncating additions for no more registers",
        .before = "for (k0 ...) { ... }\nY[...] = sum[i][j];",
        .after = "for (piece ...) {\n"
                 "  for (k0 = piece ...) { ... }\n"
                 "  Y[...] = so_far[j] + sum[i][j];\n"
                 "}",
        .keeps_order = false,
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const std::vector<DeviceLoop> loops = device_loops(kernel);
    for (const ThreadBlock& block : thread_blocks(kernel)) {
      for (const Stages& stages : find_stages(kernel)) {
        const DeviceLoop* loop =
            stages.kernel == block.function ? find_loop(loops, *stages.loop) : nullptr;
        if (loop != nullptr) {
          std::ranges::move(rewrites(kernel, block, stages, *loop), std::back_inserter(result));
        }
      }
    }
    return result;
  }

private:
  static std::vector<Rewrite> rewrites(const Kernel& kernel, const ThreadBlock& block,
                                       const Stages& stages, const DeviceLoop& loop) {
    try {
      if (const auto known = known_length(kernel, loop.counted)) {
        return of_all_lengths(kernel, loop, [&](std::int64_t length) {
          const auto edit = set_constant(kernel, *known, length);
          return std::vector{edit ? *edit : throw CannotWrite{}};
        });
      }
      const auto epilogue =
          counts_ints(loop.counted) ? direct_epilogue(kernel, stages, block) : std::nullopt;
      if (epilogue) {
        Pieces pieces(kernel, stages, loop.counted, *epilogue);
        return of_all_lengths(kernel, loop,
                              [&](std::int64_t length) { return pieces.edits(length); });
      }
      return {};
    } catch (const CannotWrite&) {
      return {};
    }
  }

  /// min() takes two of one type.
  static bool counts_ints(const CountedLoop& loop) {
    return loop.step != nullptr &&
           loop.counter->getType()->isSpecificBuiltinType(clang::BuiltinType::Int) &&
           loop.limit->IgnoreImplicit()->getType()->isSpecificBuiltinType(clang::BuiltinType::Int);
  }

  /// The lengths differ by a constant alone, so that the shortest is proved for all: small matrices
  /// have several such pieces.
  template <class Edits>
  static std::vector<Rewrite> of_all_lengths(const Kernel& kernel, const DeviceLoop& loop,
                                             Edits edits) {
    const std::int64_t step = loop.counted.step_value;
    if (!computes_the_same(kernel, edits(step))) {
      return {};
    }
    std::vector<Rewrite> result;
    for (const std::int64_t length : lengths) {
      std::vector<Edit> made = edits(length);
      if (length % step == 0 && apply_edits(kernel.source(), made) != kernel.source()) {
        result.push_back({loop.name + " pieces of " + std::to_string(length), std::move(made)});
      }
    }
    return result;
  }
};

} // namespace

const Mutator& sum_through_output() {
  static const SumThroughOutput mutator;
  return mutator;
}

} // namespace evo
