#include "mutators/buffered_loop.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/references.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

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

} // namespace

bool defines_variables(const std::vector<const StagePart*>& parts) {
  return std::ranges::any_of(
      parts, [](const StagePart* part) { return isa<clang::DeclStmt>(part->statement); });
}

std::string in_braces(const std::string& text, bool needed) {
  return needed ? "{\n" + text + "}\n" : text;
}

BufferedLoop::BufferedLoop(const Kernel& kernel, const Stages& stages, const SingleBuffered& before)
    : names(kernel), counter(before.loop.counter->getNameAsString()), kernel_(kernel),
      stages_(stages), before_(before) {
  stage_count = names.fresh(stages.kernel->getNameAsString() + "_stages");
  stage = names.fresh("stage");
  next_stage = names.fresh("next_" + stage);
  next_counter = names.fresh(counter + "_next");
}

bool BufferedLoop::is_shared_memory_used_around() const {
  const auto count = [](const Accesses& accesses) {
    return std::ranges::count_if(accesses.list, [](const MemoryAccess& access) {
      return access.memory.space == Space::Shared || access.memory.space == Space::Unknown;
    });
  };
  const Accesses kernel = accesses_of(*stages_.kernel->getBody());
  return stages_.inside_loop || kernel.opaque != nullptr ||
         count(kernel) != count(accesses_of(*stages_.loop));
}

std::optional<BufferedLoop::Places> BufferedLoop::places() {
  const auto loop = span_of(kernel_, *counted().loop);
  const auto before_loop = offset_before_loop();
  const auto before_kernel = offset_before(kernel_, *stages_.kernel);
  const auto before_tiles = before_.storage.record == nullptr
                                ? before_kernel
                                : offset_before(kernel_, *before_.storage.record);
  if (!loop || !before_loop || !before_kernel || !before_tiles || !find_uses(*loop)) {
    return std::nullopt;
  }
  return Places{*loop, *before_loop, *before_kernel, *before_tiles};
}

bool BufferedLoop::find_uses(Span loop) {
  const auto braces = span_of(kernel_, *stages_.parent);
  if (!braces) {
    return false;
  }
  for (const clang::ValueDecl* tile : before_.storage.tiles) {
    const auto uses = references(kernel_, *tile);
    if (!uses || !std::ranges::all_of(*uses, [&](Span use) {
          return loop.contains(use.begin) || (use.begin >= loop.end && braces->contains(use.begin));
        })) {
      return false;
    }
    std::ranges::partition_copy(*uses, std::back_inserter(tile_uses_),
                                std::back_inserter(uses_behind_),
                                [&](Span use) { return loop.contains(use.begin); });
  }
  const auto uses = references(kernel_, *counted().counter);
  counter_uses_ = uses.value_or(std::vector<Span>{});
  return uses.has_value();
}

std::optional<unsigned> BufferedLoop::offset_before_loop() const {
  const auto span = span_of(kernel_, *counted().loop);
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

std::vector<Edit> BufferedLoop::on_stage(const std::string& used_stage,
                                         const std::string& used_counter) const {
  std::vector<Edit> edits;
  for (const Span& use : tile_uses_) {
    edits.push_back({use.end, 0, "[" + used_stage + "]"});
  }
  for (const Span& use : counter_uses_) {
    if (used_counter != counter) {
      edits.push_back({use.begin, use.length(), used_counter});
    }
  }
  return edits;
}

std::vector<Edit> BufferedLoop::stage_dimensions() {
  std::vector<Edit> edits;
  for (const clang::ValueDecl* tile : before_.storage.tiles) {
    const auto name = span_of(kernel_, clang::SourceRange(tile->getLocation()));
    editable_ = editable_ && name;
    edits.push_back({name.value_or(Span{}).end, 0, "[" + stage_count + "]"});
  }
  for (const Span& use : uses_behind_) {
    edits.push_back({use.end, 0, "[0]"});
  }
  return edits;
}

std::string BufferedLoop::alignment_assertions() const {
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

std::optional<std::vector<const StagePart*>> BufferedLoop::definitions_for_compute() const {
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

bool BufferedLoop::uses_counter(const std::vector<const StagePart*>& parts) const {
  return std::ranges::any_of(
      parts, [&](const StagePart* part) { return mentions(*part->statement, *counted().counter); });
}

std::string BufferedLoop::print(const std::vector<const StagePart*>& parts,
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

std::string BufferedLoop::text(const clang::Stmt* node, const std::vector<Edit>& edits) {
  const auto span = span_of(kernel_, *node);
  editable_ = editable_ && span;
  return span ? render(kernel_, *span, edits) : "";
}

std::string BufferedLoop::operand(const clang::Expr* expr, Binding binding) {
  const auto written = evo::operand(kernel_, *expr, binding);
  editable_ = editable_ && written;
  return written.value_or("");
}

std::string BufferedLoop::step(Binding binding) {
  return counted().step == nullptr ? "1" : operand(counted().step, binding);
}

std::string BufferedLoop::counter_type() const {
  return counted().counter->getType().getUnqualifiedType().getAsString();
}

std::string BufferedLoop::first_counter() {
  const clang::QualType written = counted().start->IgnoreParenImpCasts()->getType();
  const std::string start = operand(counted().start, Binding::Sum);
  return written.getCanonicalType().getUnqualifiedType() ==
                 counted().counter->getType().getCanonicalType().getUnqualifiedType()
             ? start
             : "static_cast<" + counter_type() + ">(" + start + ")";
}

} // namespace evo
