#include "mutators/analysis/single_buffered.hpp"

#include <algorithm>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

namespace evo {
namespace {

using clang::isa;

/// Splits the body at its two barriers; false if it has others or something stands in the way.
bool split_at_barriers(const Stages& stages, SingleBuffered& found) {
  const std::vector<StagePart>& body = stages.body;
  std::vector<std::size_t> barriers;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i].role == Role::Barrier) {
      barriers.push_back(i);
    } else if (!body[i].accesses.barriers.empty()) {
      return false;
    }
  }
  if (barriers.size() != 2) {
    return false;
  }
  found.barrier = body[barriers[0]].statement;
  found.begins_with_barrier = barriers[1] + 1 != body.size();
  const std::size_t middle = found.begins_with_barrier ? barriers[1] : barriers[0];
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i].role != Role::Barrier) {
      (i < middle ? found.load : found.compute).push_back(&body[i]);
    }
    if (found.begins_with_barrier && i < barriers[0] && body[i].role != Role::Other) {
      return false;
    }
  }
  return true;
}

/// Whether control may leave `statement` other than at its end.
bool leaves(const clang::Stmt* statement, bool in_loop = false) {
  if (statement == nullptr) {
    return false;
  }
  if (isa<clang::ReturnStmt, clang::GotoStmt, clang::LabelStmt, clang::SwitchStmt>(statement) ||
      (isa<clang::BreakStmt, clang::ContinueStmt>(statement) && !in_loop)) {
    return true;
  }
  in_loop = in_loop || isa<clang::ForStmt, clang::WhileStmt, clang::DoStmt>(statement);
  return std::ranges::any_of(statement->children(),
                             [&](const clang::Stmt* child) { return leaves(child, in_loop); });
}

bool is_defined_in(const clang::VarDecl* variable, const clang::Stmt* statement) {
  const clang::SourceRange range = statement->getSourceRange();
  return range.getBegin() <= variable->getLocation() && variable->getLocation() <= range.getEnd();
}

/// Whether an iteration's statements change a variable from outside the loop, accumulators
/// included.
bool changes(const std::vector<StagePart>& body, const clang::VarDecl* variable) {
  return std::ranges::any_of(body, [&](const StagePart& part) {
    return std::ranges::any_of(part.accesses.list, [&](const MemoryAccess& access) {
      return access.writes && access.memory.variable == variable;
    });
  });
}

/// Registers that stay as they are while the loop runs, its counter aside.
bool is_invariant(const Stages& stages, const clang::Expr& expr) {
  const Accesses accesses = accesses_of(expr);
  return accesses.opaque == nullptr && accesses.barriers.empty() &&
         std::ranges::all_of(accesses.list, [&](const MemoryAccess& access) {
           return !access.writes && access.memory.space == Space::Register &&
                  !changes(stages.body, access.memory.variable);
         });
}

/// The load phase may run early: it writes tiles and its own variables, and reads nothing that the
/// rest of the iteration writes.
bool loads_independently(const Stages& stages, const SingleBuffered& found) {
  const auto own = [&](const clang::VarDecl* variable) {
    return std::ranges::any_of(found.load, [&](const StagePart* part) {
      return is_defined_in(variable, part->statement);
    });
  };
  const auto allowed = [&](const MemoryAccess& access) {
    const Memory& memory = access.memory;
    switch (memory.space) {
    case Space::Register:
      return own(memory.variable) || (!access.writes && !changes(stages.body, memory.variable));
    case Space::Shared:
      return access.writes ? !access.reads : std::ranges::count(stages.tiles, memory) == 0;
    case Space::Global:
      return !access.writes;
    case Space::Unknown:
      return false;
    }
    return false;
  };
  return std::ranges::all_of(found.load, [&](const StagePart* part) {
    return part->accesses.opaque == nullptr && !leaves(part->statement) &&
           std::ranges::all_of(part->accesses.list, allowed);
  });
}

bool computes_in_registers(const SingleBuffered& found) {
  const auto allowed = [](const MemoryAccess& access) {
    return access.memory.space != Space::Unknown &&
           (!access.writes || access.memory.space == Space::Register);
  };
  return std::ranges::all_of(found.compute, [&](const StagePart* part) {
    return part->accesses.opaque == nullptr && !leaves(part->statement) &&
           std::ranges::all_of(part->accesses.list, allowed);
  });
}

} // namespace

std::optional<SingleBuffered> find_single_buffered(const Kernel& kernel, const Stages& stages) {
  const auto loop = counted_loop(kernel, *stages.loop);
  const auto storage = find_tile_storage(kernel, stages);
  if (!loop || !storage) {
    return std::nullopt;
  }
  SingleBuffered found{.loop = *loop, .storage = *storage, .load = {}, .compute = {}};
  const bool legal = split_at_barriers(stages, found) && is_invariant(stages, *loop->start) &&
                     is_invariant(stages, *loop->limit) && loads_independently(stages, found) &&
                     computes_in_registers(found);
  return legal ? std::optional(std::move(found)) : std::nullopt;
}

} // namespace evo
