// Sends the results through shared memory, so that a block stores whole rows of its tile.
//
//   before                                after "gemm/epilogue 64 rows through x"
//   for (i ...)                           for (first_row = 0; first_row < block_m;
//     for (j ...) {                            first_row += staged_rows) {
//       const int row =                     __syncthreads();
//           block_row + thread_row + i;     for (i ...)
//       const int col =                       for (j ...) {
//           block_col + thread_col + j;         const int staged_row = thread_row + i - first_row;
//       if (row < d && col < d) {               const int staged_col = thread_col + j;
//         Y[row * d + col] = sum[i][j];         if (0 <= staged_row && staged_row < staged_rows)
//       }                                         x[...staged_row...][staged_col] = sum[i][j];
//     }                                       }
//                                           __syncthreads();
//                                           for (staged = threadIdx.x; ...; staged += threads) {
//                                             const int staged_row = staged / block_n;
//                                             const int staged_col = staged % block_n;
//                                             const int row = block_row + first_row + staged_row;
//                                             const int col = block_col + staged_col;
//                                             if (row < d && col < d) {
//                                               Y[row * d + col] = x[...][staged_col];
//                                             }
//                                           }
//                                         }
//
// "through x" takes the memory of a tile of the reduction that nobody reads any more, as many rows
// of results at a time as find room in it, and shared memory per block stays as it is. Without it
// the rows get a tile of their own, padded so that pairs and groups of four meet no bank conflicts.
// Wide stores stay as wide, with the tests that they have. What is computed on the way to a store
// (the low-rank sum) is computed first, by the same thread as before, into the accumulator.
//
// Precondition: every reduction of a kernel is followed by a nest of loops in which the threads of
// a block store each element of its tile once (analysis/direct_epilogue.hpp): threads' part and
// block's part of a coordinate are summands apart, and the row of threads' parts is as long as a
// constant says. The tile is of floats, and its last extent as wide as the results. Legal if both
// files compute the same (analysis/meaning.hpp) without a race, at sizes that take every path.
// Nothing is computed differently, so results keep every bit.
//
// It comes before or behind vectorise_access, peel_edges, split_tail and tensorise: rows that are
// stored element by element can be vectorised afterwards, and stages of a tile added to one that
// rows go through. fuse_epilogue comes first, and so does tensorise before "through x".
//
// Expected gain: a warp of tensor cores stores 8 rows of 32 bytes at a time, one of 8x16 per thread
// 4 rows of 128; afterwards it is one row of 512. Fewer, fuller requests to L2 at the end of a
// block: a per cent at most where the reduction is long, more where it is short.
#include <algorithm>
#include <array>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>
#include <clang/AST/TypeLoc.h>

#include "mutators/analysis/direct_epilogue.hpp"
#include "mutators/analysis/loop_nest.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/tile_storage.hpp"
#include "mutators/constant_placement.hpp"
#include "mutators/edited.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"
#include "mutators/tile_alignment.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::array<std::int64_t, 3> own_rows{16, 32, 64};
constexpr std::int64_t own_padding = 8;

/// One kernel, all of whose reductions end in a direct epilogue.
struct StagedKernel {
  const clang::FunctionDecl* function = nullptr;
  ThreadBlock block;
  TileStorage storage;
  std::vector<DirectEpilogue> epilogues; // of one tile, on paths that exclude each other
};

bool are_alike(const DirectEpilogue& a, const DirectEpilogue& b) {
  return a.row.extent == b.row.extent && a.column.extent == b.column.extent;
}

std::vector<StagedKernel> kernels_to_stage(const Kernel& kernel) {
  const std::vector<Stages> all = find_stages(kernel);
  std::vector<StagedKernel> result;
  for (const ThreadBlock& block : thread_blocks(kernel)) {
    StagedKernel staged{.function = block.function, .block = block, .storage = {}, .epilogues = {}};
    bool whole = true;
    for (const Stages& stages : all) {
      if (stages.kernel != block.function || stages.tiles.empty()) {
        continue; // of another kernel, or a low-rank sum in an epilogue
      }
      const auto storage = find_tile_storage(kernel, stages);
      auto epilogue = storage ? direct_epilogue(kernel, stages, block) : std::nullopt;
      whole = whole && epilogue &&
              (staged.epilogues.empty() || are_alike(staged.epilogues.front(), *epilogue));
      const bool shared =
          whole && std::ranges::count(staged.epilogues, epilogue->nest, &DirectEpilogue::nest) != 0;
      if (whole && !shared) { // by loops one behind another
        staged.storage = *storage;
        staged.epilogues.push_back(std::move(*epilogue));
      }
    }
    if (whole && !staged.epilogues.empty()) {
      result.push_back(std::move(staged));
    }
  }
  return result;
}

/// Where the rows lie while they are staged.
struct StagingPlace {
  const clang::ValueDecl* tile = nullptr;  // of the reduction; nullptr: one of their own
  std::vector<const clang::Expr*> leading; // its extents but for the last
  std::int64_t rows = 0;                   // that it has room for
};

/// The first of the tiles with room for most rows of `width` floats; none has room for a row: no
/// tile.
StagingPlace roomiest_tile(const Kernel& kernel, const TileStorage& storage, std::int64_t width) {
  StagingPlace best;
  for (const clang::ValueDecl* tile : storage.tiles) {
    auto extents = written_extents(*tile);
    const bool floats = tile->getType()->getBaseElementTypeUnsafe()->isSpecificBuiltinType(
        clang::BuiltinType::Float);
    if (!floats || extents.size() < 2 || constant_value(kernel, *extents.back()) < width) {
      continue;
    }
    extents.pop_back();
    std::int64_t rows = 1;
    for (const clang::Expr* extent : extents) {
      rows *= constant_value(kernel, *extent).value_or(0);
    }
    if (rows > best.rows) {
      best = {tile, std::move(extents), rows};
    }
  }
  return best;
}

/// One kernel's rewrite. All of it throws CannotWrite where it cannot be written.
class EpilogueStaging {
public:
  EpilogueStaging(const Kernel& kernel, const StagedKernel& staged, StagingPlace place)
      : kernel_(kernel), staged_(staged), place_(std::move(place)) {
    Names names(kernel);
    const std::string prefix = staged.function->getNameAsString() + "_";
    rows_ = names.fresh(prefix + "staged_rows");
    padding_ = names.fresh(prefix + "staged_pad");
    own_ = names.fresh("staged");
    own_variable_ = names.fresh(prefix + "staged");
    first_row_ = names.fresh("first_row");
    row_ = names.fresh("staged_row");
    column_ = names.fresh("staged_col");
    element_ = names.fresh("staged_element");
  }

  std::vector<Edit> edits(std::int64_t rows) {
    edits_.clear();
    whole_ = rows == staged_.epilogues.front().row.extent;
    write_constants(rows);
    if (place_.tile == nullptr) {
      declare_own();
    }
    align();
    for (const DirectEpilogue& epilogue : staged_.epilogues) {
      const auto begin = begin_of(kernel_, *epilogue.nest);
      const Span nest = span(*without_pragmas(epilogue.nest));
      const unsigned from = begin ? *begin : throw CannotWrite{};
      edits_.push_back({from, nest.end - from, staged(epilogue)});
    }
    sort_edits(edits_);
    return edits_;
  }

private:
  Span span(const clang::Stmt& code) const { return checked(span_of(kernel_, code)); }
  Span expression(const clang::Expr& expr) const {
    return checked(span_of(kernel_, expr.getSourceRange()));
  }
  std::string text(const clang::Expr& expr, Binding binding) const {
    const auto found = operand(kernel_, expr, binding);
    return found ? *found : throw CannotWrite{};
  }
  const clang::Expr& tile_rows() const { return *staged_.epilogues.front().row.written_extent; }
  const clang::Expr& tile_columns() const {
    return *staged_.epilogues.front().column.written_extent;
  }

  // ---- where the rows lie -----------------------------------------------------------------------

  void write_constants(std::int64_t rows) {
    std::vector<const clang::VarDecl*> behind;
    std::string room;
    for (const clang::Expr* extent : with_leading({&tile_rows(), &tile_columns()})) {
      std::ranges::move(mentioned_constants(*extent), std::back_inserter(behind));
    }
    for (const clang::Expr* extent : place_.leading) {
      room += (room.empty() ? " && " + rows_ + " <= " : " * ") + text(*extent, Binding::Operand);
    }
    const clang::Decl& user = staged_.storage.record != nullptr
                                  ? static_cast<const clang::Decl&>(*staged_.storage.record)
                                  : *staged_.function;
    const auto offset = offset_behind(kernel_, behind, user);
    edits_.push_back(
        {offset ? *offset : throw CannotWrite{}, 0,
         "constexpr int " + rows_ + " = " + std::to_string(rows) + ";\n" + //
             (place_.tile == nullptr
                  ? "constexpr int " + padding_ + " = " + std::to_string(own_padding) + ";\n"
                  : "") + //
             "static_assert(" +
             text(tile_rows(), Binding::Product) + " % " + rows_ + " == 0" + room + ");\n"});
  }

  std::vector<const clang::Expr*> with_leading(std::vector<const clang::Expr*> extents) const {
    extents.insert(extents.end(), place_.leading.begin(), place_.leading.end());
    return extents;
  }

  std::int64_t widest_store() const {
    std::int64_t widest = 1;
    for (const DirectEpilogue& epilogue : staged_.epilogues) {
      for (const ResultStore& store : epilogue.stores) {
        widest = std::max(widest, store.width);
      }
    }
    return widest;
  }

  void declare_own() {
    const std::int64_t widest = widest_store();
    const std::string alignment = widest == 1 ? "" : "alignas(" + std::to_string(4 * widest) + ") ";
    const std::string extents =
        "[" + rows_ + "][" + text(tile_columns(), Binding::Sum) + " + " + padding_ + "];\n";
    if (staged_.storage.record != nullptr) {
      const Span record = checked(span_of(kernel_, staged_.storage.record->getSourceRange()));
      edits_.push_back({record.end - 1, 0, alignment + "float " + own_ + extents});
    } else {
      const Span body = span(*staged_.function->getBody());
      edits_.push_back(
          {body.begin + 1, 0, "\n" + alignment + "__shared__ float " + own_variable_ + extents});
    }
  }

  /// For wide accesses to the rows, or to the struct and its memory that they become a part of.
  void align() {
    const clang::ValueDecl* beside =
        staged_.storage.record == nullptr ? nullptr : staged_.storage.tiles.front();
    const clang::ValueDecl* tile = place_.tile == nullptr ? beside : place_.tile;
    if (tile == nullptr || widest_store() == 1) {
      return;
    }
    const auto& element = present(first_element_of(*tile, *staged_.function->getBody()));
    auto edits = align_tile(kernel_, element, widest_store() * std::int64_t{sizeof(float)});
    std::ranges::move(edits ? *edits : throw CannotWrite{}, std::back_inserter(edits_));
  }

  const clang::ArraySubscriptExpr* first_element_of(const clang::ValueDecl& tile,
                                                    const clang::Stmt& code) const {
    const auto* element = dyn_cast<clang::ArraySubscriptExpr>(&code);
    const Memory memory =
        element == nullptr || element->getType()->isArrayType() ? Memory{} : memory_of(*element);
    if (element != nullptr && (memory.variable == &tile || memory.member == &tile)) {
      return element;
    }
    for (const clang::Stmt* child : code.children()) {
      const auto* found = child == nullptr ? nullptr : first_element_of(tile, *child);
      if (found != nullptr) {
        return found;
      }
    }
    return nullptr;
  }

  /// tiles.x where the kernel says so; the tile's name without a struct.
  std::string tile_text() const {
    if (staged_.storage.record == nullptr) {
      return place_.tile == nullptr ? own_variable_ : place_.tile->getNameAsString();
    }
    const clang::MemberExpr& member = present(first_member(*staged_.function->getBody()));
    return text(*member.getBase(), Binding::Operand) + (member.isArrow() ? "->" : ".") +
           (place_.tile == nullptr ? own_ : place_.tile->getNameAsString());
  }

  const clang::MemberExpr* first_member(const clang::Stmt& code) const {
    const auto* member = dyn_cast<clang::MemberExpr>(&code);
    if (member != nullptr && member->getMemberDecl() == staged_.storage.tiles.front()) {
      return member;
    }
    for (const clang::Stmt* child : code.children()) {
      const auto* found = child == nullptr ? nullptr : first_member(*child);
      if (found != nullptr) {
        return found;
      }
    }
    return nullptr;
  }

  std::string staged_place(std::int64_t offset) const {
    std::string indices;
    std::string below; // the extents behind
    for (std::size_t i = place_.leading.size(); i-- > 0;) {
      const std::string extent = text(*place_.leading[i], Binding::Operand);
      const std::string quotient =
          below.empty()
              ? row_
              : row_ + " / " + (below.find('*') == std::string::npos ? below : "(" + below + ")");
      indices = "[" + quotient + (i == 0 ? "" : " % " + extent) + "]" + indices;
      below = below.empty() ? extent : extent + " * " + below;
    }
    return tile_text() + (place_.tile == nullptr ? "[" + row_ + "]" : indices) + "[" + column_ +
           (offset == 0 ? "" : " + " + std::to_string(offset)) + "]";
  }

  // ---- what the threads do ----------------------------------------------------------------------

  std::string staged(const DirectEpilogue& epilogue) const {
    const ResultStore* group = plain_store(epilogue);
    const std::string value =
        group != nullptr ? render(kernel_, expression(*group->value)) : accumulator(epilogue);
    const std::string both = "__syncthreads();\n" +
                             writing(epilogue, group == nullptr ? 1 : group->width, value) +
                             "__syncthreads();\n" + storing(epilogue);
    return (group != nullptr ? "" : computing(epilogue)) +
           (whole_ ? both
                   : "#pragma unroll 1\nfor (int " + first_row_ + " = 0; " + first_row_ + " < " +
                         text(tile_rows(), Binding::Sum) + "; " + first_row_ + " += " + rows_ +
                         ") {\n" + both + "}\n");
  }

  /// The nest with the accumulators to store to.
  std::string computing(const DirectEpilogue& epilogue) const {
    const ResultStore& store = epilogue.stores.front();
    const auto begin = begin_of(kernel_, *epilogue.nest);
    const Span action = span(*store.statement);
    const std::string kept =
        accumulator(epilogue) + " = " + render(kernel_, expression(*store.value)) + ";";
    const unsigned from = begin ? *begin : throw CannotWrite{};
    return render(kernel_, {from, span(*without_pragmas(epilogue.nest)).end},
                  {{action.begin, action.length(), kept}}) +
           "\n";
  }

  /// What the only store of a nest adds something to, as each iteration names it.
  std::string accumulator(const DirectEpilogue& epilogue) const {
    const ResultStore& store = epilogue.stores.front();
    const clang::Expr& found = present(accumulator_in(epilogue, *store.value));
    if (epilogue.stores.size() != 1 || store.width != 1 || store.offset != 0) {
      throw CannotWrite{};
    }
    return text(found, Binding::Operand);
  }

  static const clang::Expr* accumulator_in(const DirectEpilogue& epilogue,
                                           const clang::Stmt& code) {
    const auto* element = dyn_cast<clang::ArraySubscriptExpr>(&code);
    if (element != nullptr && std::ranges::any_of(epilogue.accumulators, [&](const auto* array) {
          return mentions(*element->getBase(), *array);
        })) {
      return element;
    }
    for (const clang::Stmt* child : code.children()) {
      const auto* found = child == nullptr ? nullptr : accumulator_in(epilogue, *child);
      if (found != nullptr) {
        return found;
      }
    }
    return nullptr;
  }

  /// From registers to shared memory.
  std::string writing(const DirectEpilogue& epilogue, std::int64_t width,
                      const std::string& value) const {
    std::string result;
    for (const CountedLoop& loop : epilogue.loops) {
      const Span whole = span(*loop.loop);
      const Span body = span(*loop.loop->getBody());
      result += "#pragma unroll\n" + render(kernel_, {whole.begin, body.begin}) + "{\n";
    }
    result += "const int " + row_ + " = " + sum(epilogue.row.rest) +
              (whole_ ? "" : " - " + first_row_) + ";\n";
    result += "const int " + column_ + " = " + sum(epilogue.column.rest) + ";\n";
    const std::string move = wide(staged_place(0), width, false) + " = " + value + ";\n";
    result +=
        whole_ ? move : "if (" + row_ + " >= 0 && " + row_ + " < " + rows_ + ") {\n" + move + "}\n";
    return result + std::string(epilogue.loops.size(), '}') + "\n";
  }

  std::string sum(const std::vector<const clang::Expr*>& summands) const {
    std::string result;
    for (const clang::Expr* summand : summands) {
      result += (result.empty() ? "" : " + ") + text(*summand, Binding::Product);
    }
    return result;
  }

  /// The store of a whole group if all it takes are registers: it needs no conditions, for in
  /// shared memory there is room for all.
  static const ResultStore* plain_store(const DirectEpilogue& epilogue) {
    const ResultStore& first = epilogue.stores.front();
    const auto from_registers = [](const ResultStore& store) {
      const Accesses accesses = accesses_of(*store.value);
      return accesses.opaque == nullptr &&
             std::ranges::all_of(accesses.list, [](const MemoryAccess& access) {
               return access.memory.space == Space::Register && !access.writes;
             });
    };
    const bool whole = std::ranges::all_of(epilogue.stores, [&](const ResultStore& store) {
      return store.offset + store.width <= first.width && from_registers(store);
    });
    return whole && first.offset == 0 && computes_nothing(*epilogue.action) ? &first : nullptr;
  }

  static bool computes_nothing(const clang::Stmt& code) {
    if (const auto* branch = dyn_cast<clang::IfStmt>(&code)) {
      return computes_nothing(*branch->getThen()) &&
             (branch->getElse() == nullptr || computes_nothing(*branch->getElse()));
    }
    const auto* braces = dyn_cast<clang::CompoundStmt>(&code);
    return braces == nullptr ? !clang::isa<clang::DeclStmt, clang::ForStmt, clang::WhileStmt,
                                           clang::DoStmt, clang::AttributedStmt>(code)
                             : std::ranges::all_of(braces->body(), [](const clang::Stmt* inner) {
                                 return computes_nothing(*inner);
                               });
  }

  static std::string wide(const std::string& place, std::int64_t width, bool reads) {
    return width == 1 ? place
                      : "*reinterpret_cast<" + std::string(reads ? "const " : "") + "float" +
                            std::to_string(width) + " *>(&" + place + ")";
  }

  /// From shared memory to where the results belong, row by row.
  std::string storing(const DirectEpilogue& epilogue) const {
    const std::string columns = text(tile_columns(), Binding::Operand);
    const std::int64_t width = widest_store();
    const std::string times = width == 1 ? "" : " * " + std::to_string(width);
    std::string result = "for (int " + element_ + " = threadIdx.x" + times + "; " + element_ +
                         " < " + (whole_ ? text(tile_rows(), Binding::Product) : rows_) + " * " +
                         columns + "; " + element_ + " += " + staged_.block.written + times +
                         ") {\n";
    result += "const int " + row_ + " = " + element_ + " / " + columns + ";\n";
    result += "const int " + column_ + " = " + element_ + " % " + columns + ";\n";
    for (const clang::DeclStmt* definition : epilogue.definitions) {
      result += coordinates_instead(epilogue, *definition) + "\n";
    }
    return result + stored(epilogue, *epilogue.action) + "}\n";
  }

  /// The definition of the row or of the column by what is staged; any other one as it is.
  std::string coordinates_instead(const DirectEpilogue& epilogue,
                                  const clang::DeclStmt& definition) const {
    const auto* variable = dyn_cast<clang::VarDecl>(definition.getSingleDecl());
    std::vector<Edit> edits;
    if (variable == epilogue.row.variable || variable == epilogue.column.variable) {
      const Span value = expression(*variable->getInit());
      const bool row = variable == epilogue.row.variable;
      const std::string origin = sum((row ? epilogue.row : epilogue.column).origin);
      edits.push_back(
          {value.begin, value.length(),
           origin + " + " + (row ? (whole_ ? "" : first_row_ + " + ") + row_ : column_)});
    } else if (counts(epilogue, definition)) {
      throw CannotWrite{};
    }
    return render(kernel_, span(definition), edits);
  }

  static bool counts(const DirectEpilogue& epilogue, const clang::Stmt& code) {
    return std::ranges::any_of(
        epilogue.loops, [&](const CountedLoop& loop) { return mentions(code, *loop.counter); });
  }

  /// What an action stores, under its conditions: what is staged.
  std::string stored(const DirectEpilogue& epilogue, const clang::Stmt& code) const {
    const auto store = std::ranges::find(epilogue.stores, &code, &ResultStore::statement);
    if (store != epilogue.stores.end()) {
      const Span value = expression(*store->value);
      return render(kernel_, span(code),
                    {{value.begin, value.length(),
                      wide(staged_place(store->offset), store->width, true)}}) +
             "\n";
    }
    if (const auto* branch = dyn_cast<clang::IfStmt>(&code)) {
      if (counts(epilogue, *branch->getCond())) {
        throw CannotWrite{};
      }
      const std::string test = "if (" + render(kernel_, expression(*branch->getCond())) + ") {\n" +
                               stored(epilogue, *branch->getThen()) + "}";
      return branch->getElse() == nullptr
                 ? test + "\n"
                 : test + " else {\n" + stored(epilogue, *branch->getElse()) + "}\n";
    }
    std::string result;
    if (const auto* braces = dyn_cast<clang::CompoundStmt>(&code)) {
      for (const clang::Stmt* inner : braces->body()) {
        result += stored(epilogue, *inner);
      }
    }
    return result;
  }

  const Kernel& kernel_;
  const StagedKernel& staged_;
  const StagingPlace place_;
  std::string rows_, padding_, own_, own_variable_, first_row_, row_, column_, element_;
  std::vector<Edit> edits_;
  bool whole_ = false;
};

class StageEpilogue : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "stage_epilogue",
        .summary = "sends results through shared memory, so that a block stores whole rows: fewer, "
                   "fuller requests at its end for a barrier or two",
        .before = "Y[row * d + col] = sum[i][j];",
        .after = "tile[staged_row][staged_col] = sum[i][j];\n"
                 "__syncthreads();\n"
                 "Y[row * d + col] = tile[staged / 128][staged % 128];",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    for (const StagedKernel& staged : kernels_to_stage(kernel)) {
      const DirectEpilogue& first = staged.epilogues.front();
      StagingPlace tile = roomiest_tile(kernel, staged.storage, first.column.extent);
      if (tile.tile != nullptr) {
        const std::string suffix = " through " + tile.tile->getNameAsString();
        const std::int64_t rows = largest_part(first.row.extent, tile.rows);
        add(kernel, staged, std::move(tile), {rows}, suffix, result);
      }
      add(kernel, staged, {}, rows_of_their_own(kernel, staged), "", result);
    }
    return result;
  }

private:
  /// The most rows that divide all of them and find room.
  static std::int64_t largest_part(std::int64_t all, std::int64_t room) {
    std::int64_t part = std::min(all, room);
    while (all % part != 0) {
      --part;
    }
    return part;
  }

  static std::vector<std::int64_t> rows_of_their_own(const Kernel& kernel,
                                                     const StagedKernel& staged) {
    const DirectEpilogue& first = staged.epilogues.front();
    std::vector<std::int64_t> result;
    for (const std::int64_t rows : own_rows) {
      const std::int64_t bytes =
          rows * (first.column.extent + own_padding) * std::int64_t{sizeof(float)};
      if (first.row.extent % rows == 0 &&
          can_grow(kernel, *staged.function, staged.storage, bytes)) {
        result.push_back(rows);
      }
    }
    return result;
  }

  /// The rewrites with each number of rows; the first stands for all in the proof, for the number
  /// only tells how often the same is done.
  static void add(const Kernel& kernel, const StagedKernel& staged, StagingPlace place,
                  const std::vector<std::int64_t>& numbers, const std::string& suffix,
                  std::vector<Rewrite>& result) {
    try {
      EpilogueStaging staging(kernel, staged, std::move(place));
      if (numbers.empty() || !computes_the_same(kernel, staging.edits(numbers.front()))) {
        return;
      }
      for (const std::int64_t rows : numbers) {
        result.push_back({staged.function->getNameAsString() + "/epilogue " + std::to_string(rows) +
                              " rows" + suffix,
                          staging.edits(rows)});
      }
    } catch (const CannotWrite&) {
      return;
    }
  }
};

} // namespace

const Mutator& stage_epilogue() {
  static const StageEpilogue mutator;
  return mutator;
}

} // namespace evo
