// Double-buffers the shared tiles of a reduction loop: while the block computes on one stage, the
// next tile is on its way from global memory, through registers, into the other stage.
//
//   before                            after "gemm/k0 double buffer"
//   for (k0 = 0; k0 < d; k0 += K) {   load tile 0 into stage 0            // prologue
//     load tile into shared memory    barrier
//     barrier                         for (k0 = 0; k0 + K < d; k0 += K) { // steady state
//     compute                           global memory of tile k0 + K -> registers
//     barrier                           compute on `stage`
//   }                                   registers -> next stage
//                                       barrier, stage = next stage
//                                     }
//                                     compute on `stage`                  // last step
//
// The computation keeps its order and expressions, so results keep every bit; tiles keep their
// layout behind a leading [gemm_stages].
//
// Precondition: a counted loop (`<`, constant positive step) with two barriers of its own between
// loads and computation. The loads write the tiles by plain assignments and depend on nothing that
// the loop changes but its counter; the computation writes registers only; nothing leaves an
// iteration early; the tiles are used in this loop alone and may double
// (analysis/tile_storage.hpp). A double-buffered loop has one barrier, so it is not taken again.
//
// Expected gain: global memory's latency hides behind the computation and one barrier of two goes;
// it costs registers for a tile's share and twice the shared memory.
#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/first_iteration.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/single_buffered.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/register_staging.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

/// Whether shared memory may be used before or after the loop, or again by its next run.
bool is_shared_memory_used_around(const Stages& stages) {
  const auto count = [](const Accesses& accesses) {
    return std::ranges::count_if(accesses.list, [](const MemoryAccess& access) {
      return access.memory.space == Space::Shared || access.memory.space == Space::Unknown;
    });
  };
  const Accesses kernel = accesses_of(*stages.kernel->getBody());
  return stages.inside_loop || kernel.opaque != nullptr ||
         count(kernel) != count(accesses_of(*stages.loop));
}

/// One loop's rewrite: everything known, nothing refused, text printed.
class DoubleBuffering {
public:
  DoubleBuffering(const Kernel& kernel, const Stages& stages, const SingleBuffered& before)
      : kernel_(kernel), stages_(stages), before_(before), loop_(before.loop),
        always_runs_(always_has_first_iteration(kernel, *stages.kernel, loop_)), names_(kernel) {}

  /// nullopt where a text cannot be edited, the loads cannot be split, or a tile has other uses.
  std::optional<std::vector<Edit>> edits();

private:
  bool find_uses(Span loop);
  void choose_names();
  std::vector<Edit> on_stage(const std::string& stage, const std::string& counter) const;
  std::optional<std::vector<const StagePart*>> definitions_for_compute() const;
  bool uses_counter(const std::vector<const StagePart*>& parts) const;

  std::string alignment_assertions() const;
  std::string prologue();
  std::string has_next();
  std::string first_counter();
  std::string last_counter();
  std::string counter_type() const {
    return loop_.counter->getType().getUnqualifiedType().getAsString();
  }
  std::string steady_state(const RegisterStaging& loads, const std::string& compute);
  std::string last_step(const std::string& compute, bool needs_counter);
  std::string print(const std::vector<const StagePart*>& parts, const std::vector<Edit>& edits);
  std::string text(const clang::Stmt* node, const std::vector<Edit>& edits = {});
  std::string operand(const clang::Expr* expr, Binding binding);
  std::string step(Binding binding) {
    return loop_.step == nullptr ? "1" : operand(loop_.step, binding);
  }
  std::optional<unsigned> offset_before_loop() const;

  const Kernel& kernel_;
  const Stages& stages_;
  const SingleBuffered& before_;
  const CountedLoop& loop_;
  const bool always_runs_;
  Names names_;
  std::vector<Span> tile_uses_;
  std::vector<Span> counter_uses_;
  std::string stage_count_, stage_, next_stage_, counter_, next_counter_;
  bool editable_ = true;
};

/// Every use of a tile must be in the loop.
bool DoubleBuffering::find_uses(Span loop) {
  for (const clang::ValueDecl* tile : before_.storage.tiles) {
    const auto uses = references(kernel_, *tile);
    if (!uses || !std::ranges::all_of(*uses, [&](Span use) { return loop.contains(use.begin); })) {
      return false;
    }
    tile_uses_.insert(tile_uses_.end(), uses->begin(), uses->end());
  }
  const auto uses = references(kernel_, *loop_.counter);
  counter_uses_ = uses.value_or(std::vector<Span>{});
  return uses.has_value();
}

void DoubleBuffering::choose_names() {
  counter_ = loop_.counter->getNameAsString();
  stage_count_ = names_.fresh(stages_.kernel->getNameAsString() + "_stages");
  stage_ = names_.fresh("stage");
  next_stage_ = names_.fresh("next_" + stage_);
  next_counter_ = names_.fresh(counter_ + "_next");
}

/// Makes code use one stage's tiles, and another counter.
std::vector<Edit> DoubleBuffering::on_stage(const std::string& stage,
                                            const std::string& counter) const {
  std::vector<Edit> edits;
  for (const Span& use : tile_uses_) {
    edits.push_back({use.end, 0, "[" + stage + "]"});
  }
  for (const Span& use : counter_uses_) {
    if (counter != counter_) {
      edits.push_back({use.begin, use.length(), counter});
    }
  }
  return edits;
}

std::string DoubleBuffering::text(const clang::Stmt* node, const std::vector<Edit>& edits) {
  const auto span = span_of(kernel_, *node);
  editable_ = editable_ && span;
  return span ? render(kernel_, *span, edits) : "";
}

std::string DoubleBuffering::operand(const clang::Expr* expr, Binding binding) {
  const auto written = evo::operand(kernel_, *expr, binding);
  editable_ = editable_ && written;
  return written.value_or("");
}

std::string DoubleBuffering::print(const std::vector<const StagePart*>& parts,
                                   const std::vector<Edit>& edits) {
  std::string result;
  for (const StagePart* part : parts) {
    // A pragma belongs to its statement and needs a line of its own.
    const auto* attributed = dyn_cast<clang::AttributedStmt>(part->statement);
    if (attributed != nullptr) {
      for (const clang::Attr* pragma : attributed->getAttrs()) {
        const auto line = pragma_line(kernel_, *pragma);
        editable_ = editable_ && line;
        result += line ? render(kernel_, *line) : "";
      }
    }
    const clang::Stmt* bare = attributed == nullptr ? part->statement : attributed->getSubStmt();
    result += text(bare, edits) + "\n";
  }
  return result;
}

bool DoubleBuffering::uses_counter(const std::vector<const StagePart*>& parts) const {
  return std::ranges::any_of(
      parts, [&](const StagePart* part) { return mentions(*part->statement, *loop_.counter); });
}

bool defines_variables(const std::vector<const StagePart*>& parts) {
  return std::ranges::any_of(
      parts, [](const StagePart* part) { return isa<clang::DeclStmt>(part->statement); });
}

std::string in_braces(const std::string& text, bool needed) {
  return needed ? "{\n" + text + "}\n" : text;
}

/// Whether `part` defines or fills a variable that `user` mentions.
bool provides(const StagePart& part, const StagePart& user) {
  if (const auto* definition = dyn_cast<clang::DeclStmt>(part.statement)) {
    return std::ranges::any_of(definition->decls(), [&](const clang::Decl* decl) {
      const auto* variable = dyn_cast<clang::VarDecl>(decl);
      return variable != nullptr && mentions(*user.statement, *variable);
    });
  }
  return std::ranges::any_of(part.accesses.list, [&](const MemoryAccess& access) {
    return access.writes && access.memory.space == Space::Register &&
           mentions(*user.statement, *access.memory.variable);
  });
}

/// The load parts without tiles that the computation needs too, say a bound for both; nullopt when
/// it needs one that fills a tile.
std::optional<std::vector<const StagePart*>> DoubleBuffering::definitions_for_compute() const {
  std::vector<const StagePart*> users = before_.compute;
  std::vector<const StagePart*> kept;
  for (auto part = before_.load.rbegin(); part != before_.load.rend(); ++part) {
    if (std::ranges::any_of(users,
                            [&](const StagePart* user) { return provides(**part, *user); })) {
      if (std::ranges::any_of((*part)->accesses.list, [](const MemoryAccess& access) {
            return access.writes && access.memory.space == Space::Shared;
          })) {
        return std::nullopt;
      }
      users.push_back(*part);
      kept.insert(kept.begin(), *part);
    }
  }
  return kept;
}

/// What wide accesses rely on, should the tiles change.
std::string DoubleBuffering::alignment_assertions() const {
  std::string result;
  for (const clang::ValueDecl* tile : before_.storage.tiles) {
    const auto* element = tile->getType()->getBaseElementTypeUnsafe();
    if (before_.storage.alignment > kernel_.ast().getTypeAlignInChars(element).getQuantity()) {
      const std::string scope =
          before_.storage.record == nullptr ? "" : before_.storage.record->getNameAsString() + "::";
      result += "static_assert(sizeof(" + scope + tile->getNameAsString() + "[0]) % " +
                std::to_string(before_.storage.alignment) + " == 0);\n";
    }
  }
  return result;
}

std::string DoubleBuffering::prologue() {
  const bool needs_counter = uses_counter(before_.load);
  std::string load = needs_counter ? "const " + text(loop_.loop->getInit()) + "\n" : "";
  load += print(before_.load, on_stage("0", counter_));
  std::string result = alignment_assertions();
  result += always_runs_
                ? ""
                : "if (" + first_counter() + " < " + operand(loop_.limit, Binding::Sum) + ") {\n";
  result += before_.begins_with_barrier ? text(before_.barrier) + "\n" : "";
  result += in_braces(load, needs_counter || defines_variables(before_.load));
  return result + text(before_.barrier) + "\nint " + stage_ + " = 0;\n";
}

/// The loop's condition one step ahead. The limit exceeds the start here, so that a signed one
/// can give way; the counter stays alone on its side and the loop a counted one.
std::string DoubleBuffering::has_next() {
  const std::string stride = step(Binding::Product);
  const std::string limit = operand(loop_.limit, Binding::Sum);
  const bool is_signed = loop_.counter->getType()->isSignedIntegerType() &&
                         loop_.limit->getType()->isSignedIntegerType() &&
                         (loop_.step == nullptr || loop_.step->getType()->isSignedIntegerType());
  return is_signed ? counter_ + " < " + limit + " - " + stride
                   : counter_ + " + " + stride + " < " + limit;
}

std::string DoubleBuffering::steady_state(const RegisterStaging& loads,
                                          const std::string& compute) {
  const bool braces = defines_variables(before_.load);
  std::string result = "for (" + text(loop_.loop->getInit()) + " " + has_next() + "; " +
                       text(loop_.loop->getInc()) + ") {\n";
  result += "const int " + next_stage_ + " = (" + stage_ + " + 1) % " + stage_count_ + ";\n";
  if (uses_counter(before_.load)) {
    result += "const " + counter_type() + " " + next_counter_ + " = " + counter_ + " + " +
              step(Binding::Product) + ";\n";
  }
  result += loads.registers + in_braces(loads.fetch, braces) + compute;
  result += in_braces(loads.store, braces) + text(before_.barrier) + "\n";
  return result + stage_ + " = " + next_stage_ + ";\n}\n";
}

/// The counter's value in the first iteration, in the counter's type.
std::string DoubleBuffering::first_counter() {
  const clang::QualType written = loop_.start->IgnoreParenImpCasts()->getType();
  const std::string start = operand(loop_.start, Binding::Sum);
  return written.getCanonicalType().getUnqualifiedType() ==
                 loop_.counter->getType().getCanonicalType().getUnqualifiedType()
             ? start
             : "static_cast<" + counter_type() + ">(" + start + ")";
}

/// The counter's value in the last iteration.
std::string DoubleBuffering::last_counter() {
  const std::string limit = operand(loop_.limit, Binding::Sum);
  const std::string start = operand(loop_.start, Binding::Operand);
  const std::string stride = step(Binding::Operand);
  if (loop_.step_value == 1) {
    return limit + " - 1";
  }
  return constant_value(kernel_, *loop_.start) == 0
             ? "(" + limit + " - 1) / " + stride + " * " + stride
             : start + " + (" + limit + " - 1 - " + start + ") / " + stride + " * " + stride;
}

std::string DoubleBuffering::last_step(const std::string& compute, bool needs_counter) {
  std::string result;
  if (needs_counter) {
    result += "const " + counter_type() + " " + counter_ + " = " + last_counter() + ";\n";
  }
  result = in_braces(result + compute, needs_counter || defines_variables(before_.compute));
  result += is_shared_memory_used_around(stages_) ? text(before_.barrier) + "\n" : "";
  return result + (always_runs_ ? "" : "}\n");
}

std::optional<unsigned> DoubleBuffering::offset_before_loop() const {
  const auto span = span_of(kernel_, *loop_.loop);
  const auto* attributed = dyn_cast<clang::AttributedStmt>(stages_.statement);
  if (!span || attributed == nullptr) {
    return span ? std::optional(span->begin) : std::nullopt;
  }
  unsigned first = span->begin;
  for (const clang::Attr* pragma : attributed->getAttrs()) {
    const auto line = pragma_line(kernel_, *pragma);
    if (!line) {
      return std::nullopt;
    }
    first = std::min(first, line->begin);
  }
  return first;
}

std::optional<std::vector<Edit>> DoubleBuffering::edits() {
  const auto loop = span_of(kernel_, *loop_.loop);
  const auto before_loop = offset_before_loop();
  const auto before_kernel = offset_before(kernel_, *stages_.kernel);
  const auto before_tiles = before_.storage.record == nullptr
                                ? before_kernel
                                : offset_before(kernel_, *before_.storage.record);
  const auto definitions = definitions_for_compute();
  if (!loop || !before_loop || !before_kernel || !before_tiles || !definitions ||
      !find_uses(*loop)) {
    return std::nullopt;
  }
  choose_names();
  const auto loads = split_loads(kernel_, stages_, before_.load, on_stage("0", next_counter_),
                                 on_stage(next_stage_, next_counter_), names_);
  if (!loads) {
    return std::nullopt;
  }
  std::vector<Edit> edits{
      {*before_tiles, 0,
       "constexpr int " + stage_count_ + " = 2;\nstatic_assert(" + stage_count_ + " == 2);\n\n"},
      {*before_kernel, 0, loads->constants + (loads->constants.empty() ? "" : "\n")}};
  for (const clang::ValueDecl* tile : before_.storage.tiles) {
    const auto name = span_of(kernel_, clang::SourceRange(tile->getLocation()));
    editable_ = editable_ && name;
    edits.push_back({name.value_or(Span{}).end, 0, "[" + stage_count_ + "]"});
  }
  const std::vector<Edit> current = on_stage(stage_, counter_);
  const std::string compute = print(*definitions, current) + print(before_.compute, current);
  const bool needs_counter = uses_counter(*definitions) || uses_counter(before_.compute);
  edits.push_back({*before_loop, 0, prologue()});
  edits.push_back({loop->begin, loop->length(),
                   steady_state(*loads, in_braces(compute, !definitions->empty())) +
                       last_step(compute, needs_counter)});
  std::erase(edits, Edit{*before_kernel, 0, ""});
  sort_edits(edits);
  return editable_ ? std::optional(edits) : std::nullopt;
}

std::optional<std::vector<Edit>> double_buffered(const Kernel& kernel, const Stages& stages) {
  const auto before = find_single_buffered(kernel, stages);
  const bool legal = before && can_double(kernel, stages, before->storage);
  return legal ? DoubleBuffering(kernel, stages, *before).edits() : std::nullopt;
}

class DoubleBuffer : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "double_buffer",
        .summary = "loads the next tile while computing on this one: hides global memory's latency "
                   "for twice the shared memory",
        .before = "for (...) { load; __syncthreads(); compute; __syncthreads(); }",
        .after = "load; __syncthreads();\n"
                 "for (...) { fetch next; compute; store next; __syncthreads(); }\n"
                 "compute;",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const std::vector<DeviceLoop> loops = device_loops(kernel);
    for (const Stages& stages : find_stages(kernel)) {
      const auto loop =
          std::ranges::find(loops, stages.loop, [](const DeviceLoop& l) { return l.counted.loop; });
      if (loop == loops.end()) {
        continue;
      }
      if (auto edits = double_buffered(kernel, stages)) {
        result.push_back({loop->name + " double buffer", std::move(*edits)});
      }
    }
    return result;
  }
};

} // namespace

const Mutator& double_buffer() {
  static const DoubleBuffer mutator;
  return mutator;
}

} // namespace evo
