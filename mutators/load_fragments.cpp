// Loads the operands of a register tile once per step into registers of their own: its fragments.
//
//   before                                  after "gemm/k fragments"
//   for (int k = 0; k < K; ++k) {           for (int k = 0; k < K; ++k) {
//     for (int i = 0; i < M; ++i) {           float w_fragment[M];
//       for (int j = 0; j < N; ++j) {         for (int i = 0; i < M; ++i)
//         sum[i][j] += w[row + i][k] *          w_fragment[i] = w[row + i][k];
//                      x[k][col + j];         float x_fragment[N];
//       }                                     for (int j = 0; j < N; ++j)
//     }                                         x_fragment[j] = x[k][col + j];
//   }                                         for (int i = 0; i < M; ++i)
//                                               for (int j = 0; j < N; ++j)
//                                                 sum[i][j] += w_fragment[i] * x_fragment[j];
//                                           }
//
// Precondition: a counted loop whose body holds one nest of counted loops with constant bounds and
// straight code inside, which writes registers only and reads shared memory at indices made of the
// nest's counters and of what stays the same in it. Some fragment is used more than once, and none
// exceeds max_elements. The values and the order of operations stay, so results keep every bit.
//
// Expected gain: none where the compiler does it by itself; later rewrites need the loads in the
// open, to make them wide or to issue them a step ahead.
#include <algorithm>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/loop_nest.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

constexpr std::int64_t max_elements = 32;

/// Reads of one element of shared memory, for each step of the loops that its indices mention.
struct Fragment {
  std::vector<const clang::Expr*> reads;
  std::vector<const CountedLoop*> loops;
};

/// Whether code writes registers only.
bool computes_in_registers(const Accesses& accesses) {
  return accesses.opaque == nullptr && accesses.barriers.empty() &&
         std::ranges::all_of(accesses.list, [](const MemoryAccess& access) {
           return access.memory.space != Space::Unknown &&
                  (!access.writes || access.memory.space == Space::Register);
         });
}

/// The reads of shared memory in straight code, except those that may not happen.
class ReadCollector : public SyntaxVisitor {
public:
  bool VisitImplicitCastExpr(clang::ImplicitCastExpr* cast) override {
    if (cast->getCastKind() == clang::CK_LValueToRValue &&
        memory_of(*cast->getSubExpr()).space == Space::Shared) {
      reads.push_back(cast->getSubExpr());
    }
    return true;
  }
  bool TraverseConditionalOperator(clang::ConditionalOperator*) override { return true; }
  bool TraverseBinaryOperator(clang::BinaryOperator* operation) override {
    return operation->isLogicalOp() || SyntaxVisitor::TraverseBinaryOperator(operation);
  }

  std::vector<const clang::Expr*> reads;
};

void add_variables(const clang::Stmt* statement, std::set<const clang::VarDecl*>& variables) {
  if (const auto* reference = dyn_cast<clang::DeclRefExpr>(statement)) {
    variables.insert(dyn_cast<clang::VarDecl>(reference->getDecl()));
  }
  for (const clang::Stmt* child : statement->children()) {
    if (child != nullptr) {
      add_variables(child, variables);
    }
  }
}

/// One loop's rewrite.
class FragmentLoading {
public:
  FragmentLoading(const Kernel& kernel, const DeviceLoop& loop, const LoopNest& nest)
      : kernel_(kernel), loop_(loop), nest_(nest), names_(kernel) {}

  /// nullopt where there is nothing to gain, something cannot be proved, or a macro is in the way.
  std::optional<std::vector<Edit>> edits() {
    if (!find_fragments() || !is_worthwhile()) {
      return std::nullopt;
    }
    std::string loads;
    for (const Fragment& fragment : fragments_) {
      loads += load(fragment);
    }
    insert(loads);
    sort_edits(edits_);
    return editable_ ? std::optional(edits_) : std::nullopt;
  }

private:
  bool find_fragments() {
    const Accesses accesses = accesses_of(*nest_.statement);
    ReadCollector collector;
    collector.TraverseStmt(const_cast<clang::Stmt*>(nest_.code));
    return computes_in_registers(accesses) && !collector.reads.empty() &&
           std::ranges::all_of(collector.reads,
                               [&](const auto* read) { return add(*read, accesses); });
  }

  bool add(const clang::Expr& read, const Accesses& accesses) {
    const auto known = std::ranges::find_if(fragments_, [&](const Fragment& fragment) {
      return same_expression(kernel_, fragment.reads.front(), &read);
    });
    if (known != fragments_.end()) {
      known->reads.push_back(&read);
      return true;
    }
    Fragment fragment{.reads = {&read}, .loops = {}};
    std::set<const clang::VarDecl*> variables;
    add_variables(&read, variables);
    for (const CountedLoop& loop : nest_.loops) {
      if (variables.erase(loop.counter) != 0) {
        fragment.loops.push_back(&loop);
      }
    }
    fragments_.push_back(fragment);
    return isa<clang::ArraySubscriptExpr>(read.IgnoreParens()) &&
           std::ranges::none_of(accesses.list, [&](const MemoryAccess& access) {
             return access.writes && variables.contains(access.memory.variable);
           });
  }

  std::int64_t elements(const std::vector<const CountedLoop*>& loops) const {
    std::int64_t product = 1;
    for (const CountedLoop* loop : loops) {
      product *= *trip_count(kernel_, *loop);
    }
    return product;
  }

  bool is_worthwhile() const {
    return std::ranges::all_of(
               fragments_, [&](const Fragment& f) { return elements(f.loops) <= max_elements; }) &&
           std::ranges::any_of(fragments_, [&](const Fragment& fragment) {
             return fragment.loops.size() < nest_.loops.size();
           });
  }

  /// The definition of a fragment and the loops that fill it; the nest then uses it.
  std::string load(const Fragment& fragment) {
    const clang::Expr& read = *fragment.reads.front();
    const Memory tile = memory_of(read);
    const std::string array =
        names_.fresh((tile.member != nullptr ? tile.member->getNameAsString()
                                             : tile.variable->getNameAsString()) +
                     "_fragment");
    std::string extents;
    std::string element = array;
    std::string headers;
    for (const CountedLoop* loop : fragment.loops) {
      const clang::ForStmt& written = *loop->loop;
      extents += "[" + text(*loop->limit) + "]";
      element += "[" + loop->counter->getNameAsString() + "]";
      headers += "#pragma unroll\nfor (" + text(*written.getInit()) + " " +
                 text(*written.getCond()) + "; " + text(*written.getInc()) + ") {\n";
    }
    for (const clang::Expr* use : fragment.reads) {
      const auto span = span_of(kernel_, use->getSourceRange());
      editable_ = editable_ && span;
      edits_.push_back({span.value_or(Span{}).begin, span.value_or(Span{}).length(), element});
    }
    const std::string type = read.getType().getUnqualifiedType().getAsString();
    const std::string value = " = " + text(read) + ";\n";
    return fragment.loops.empty() ? "const " + type + " " + array + value
                                  : type + " " + array + extents + ";\n" + headers + element +
                                        value + std::string(fragment.loops.size(), '}') + "\n";
  }

  /// Puts the loads before the nest and the pragmas on it.
  void insert(const std::string& loads) {
    const auto loop = span_of(kernel_, *without_pragmas(nest_.statement));
    const auto begin = begin_of(kernel_, *nest_.statement);
    editable_ = editable_ && loop && begin;
    if (!editable_) {
      return;
    }
    const bool in_braces = isa<clang::CompoundStmt>(loop_.counted.loop->getBody());
    edits_.push_back({*begin, 0, (in_braces ? "" : "{\n") + loads});
    if (!in_braces) {
      edits_.push_back({loop->end, 0, "\n}"});
    }
  }

  std::string text(const clang::Stmt& node) {
    const auto span =
        isa<clang::Expr>(node) ? span_of(kernel_, node.getSourceRange()) : span_of(kernel_, node);
    editable_ = editable_ && span;
    return span ? render(kernel_, *span) : "";
  }

  const Kernel& kernel_;
  const DeviceLoop& loop_;
  const LoopNest& nest_;
  Names names_;
  std::vector<Fragment> fragments_;
  std::vector<Edit> edits_;
  bool editable_ = true;
};

/// The one nest in the loop's body that reads shared memory.
std::optional<LoopNest> nest_in(const Kernel& kernel, const DeviceLoop& loop) {
  const clang::Stmt* body = loop.counted.loop->getBody();
  std::vector<const clang::Stmt*> statements{body};
  if (const auto* braces = dyn_cast<clang::CompoundStmt>(body)) {
    statements.assign(braces->body_begin(), braces->body_end());
  }
  std::erase_if(statements, [](const clang::Stmt* statement) {
    return std::ranges::none_of(accesses_of(*statement).list, [](const MemoryAccess& access) {
      return access.memory.space == Space::Shared;
    });
  });
  return statements.size() == 1 ? loop_nest(kernel, statements.front()) : std::nullopt;
}

class LoadFragments : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "load_fragments",
        .summary = "loads the operands of a register tile once per step into registers, where "
                   "other rewrites can make the loads wide or early",
        .before = "for (k) for (i) for (j) sum[i][j] += w[row + i][k] * x[k][col + j];",
        .after = "for (k) {\n"
                 "  for (i) w_fragment[i] = w[row + i][k];\n"
                 "  for (j) x_fragment[j] = x[k][col + j];\n"
                 "  for (i) for (j) sum[i][j] += w_fragment[i] * x_fragment[j];\n"
                 "}",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const clang::Stmt* around = nullptr; // the last loop that got a rewrite
    for (const DeviceLoop& loop : device_loops(kernel)) {
      const bool inside = around != nullptr && contains(*around, *loop.counted.loop);
      const auto nest = inside ? std::nullopt : nest_in(kernel, loop);
      auto edits = nest ? FragmentLoading(kernel, loop, *nest).edits() : std::nullopt;
      if (edits) {
        around = loop.counted.loop;
        result.push_back({loop.name + " fragments", std::move(*edits)});
      }
    }
    return result;
  }
};

} // namespace

const Mutator& load_fragments() {
  static const LoadFragments mutator;
  return mutator;
}

} // namespace evo
