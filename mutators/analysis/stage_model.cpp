#include "mutators/analysis/stage_model.hpp"

#include <algorithm>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

void collect_definitions(const clang::Stmt* statement, std::set<const clang::VarDecl*>& found) {
  if (statement == nullptr) {
    return;
  }
  if (const auto* definition = dyn_cast<clang::DeclStmt>(statement)) {
    for (const clang::Decl* decl : definition->decls()) {
      if (const auto* variable = dyn_cast<clang::VarDecl>(decl)) {
        found.insert(variable);
      }
    }
  }
  for (const clang::Stmt* child : statement->children()) {
    collect_definitions(child, found);
  }
}

/// float, float[4][4], float4, a struct of these; and int[4][4], the sums of integer products.
bool holds_sums(clang::QualType type) {
  if (const auto* array = type->getAsArrayTypeUnsafe()) {
    return array->getElementType()->isSpecificBuiltinType(clang::BuiltinType::Int) ||
           holds_sums(array->getElementType());
  }
  if (const auto* record = type->getAsRecordDecl()) {
    return std::ranges::any_of(record->fields(), [](const clang::FieldDecl* field) {
      return holds_sums(field->getType());
    });
  }
  return type->isFloatingType();
}

/// The body's accumulators: registers from outside the loop that it updates.
std::vector<const clang::VarDecl*> accumulators_of(const clang::ForStmt& loop) {
  std::set<const clang::VarDecl*> own;
  collect_definitions(&loop, own);
  std::vector<const clang::VarDecl*> result;
  for (const MemoryAccess& access : accesses_of(*loop.getBody()).list) {
    const clang::VarDecl* variable = access.memory.variable;
    if (access.writes && access.place != nullptr && access.memory.space == Space::Register &&
        variable != nullptr && !own.contains(variable) &&
        std::ranges::count(result, variable) == 0 && holds_sums(variable->getType())) {
      result.push_back(variable);
    }
  }
  return result;
}

bool is_barrier(const clang::Stmt* statement, const Accesses& accesses) {
  return accesses.barriers.size() == 1 && accesses.barriers.front() == statement;
}

Role role_of(const clang::Stmt* statement, const Accesses& accesses, const Stages& stages) {
  const auto any = [&](auto predicate) { return std::ranges::any_of(accesses.list, predicate); };
  const auto reads = [&](Space space) {
    return any([&](const MemoryAccess& a) { return a.reads && a.memory.space == space; });
  };
  if (is_barrier(statement, accesses)) {
    return Role::Barrier;
  }
  if (any([&](const MemoryAccess& a) {
        return a.writes && std::ranges::count(stages.accumulators, a.memory.variable) != 0;
      })) {
    return Role::Core;
  }
  if (reads(Space::Global)) {
    return Role::Load;
  }
  if (any([](const MemoryAccess& a) { return a.writes && a.memory.space == Space::Shared; })) {
    return Role::Store;
  }
  return reads(Space::Shared) ? Role::Fragment : Role::Other;
}

void add_moves(const StagePart& part, Stages& stages) {
  for (const MemoryAccess& access : part.accesses.list) {
    const bool carries = access.source && (access.source->space != Space::Register ||
                                           access.memory.space != Space::Register);
    if (carries && std::ranges::count(stages.accumulators, access.memory.variable) == 0) {
      stages.moves.push_back({*access.source, access.memory, access.statement});
    }
  }
}

void add_tiles(const StagePart& part, Stages& stages) {
  for (const MemoryAccess& access : part.accesses.list) {
    if (access.writes && access.memory.space == Space::Shared &&
        std::ranges::count(stages.tiles, access.memory) == 0) {
      stages.tiles.push_back(access.memory);
    }
  }
}

void add_body(Stages& stages) {
  const clang::Stmt* body = stages.loop->getBody();
  std::vector<const clang::Stmt*> statements{body};
  if (const auto* braces = dyn_cast<clang::CompoundStmt>(body)) {
    statements.assign(braces->body_begin(), braces->body_end());
  }
  for (const clang::Stmt* statement : statements) {
    StagePart part{Role::Other, statement, accesses_of(*statement)};
    part.role = role_of(statement, part.accesses, stages);
    add_moves(part, stages);
    add_tiles(part, stages);
    stages.body.push_back(std::move(part));
  }
}

void add_epilogue(Stages& stages) {
  bool after = false;
  for (const clang::Stmt* statement : stages.parent->body()) {
    const Accesses accesses = accesses_of(*statement);
    if (after && std::ranges::any_of(accesses.list, [](const MemoryAccess& a) {
          return a.writes && a.memory.space == Space::Global;
        })) {
      stages.epilogue.push_back(statement);
    }
    after = after || statement == stages.statement;
  }
}

/// Looks for reduction loops in the order of the source; does not enter one.
class Finder {
public:
  explicit Finder(const clang::FunctionDecl& kernel) : kernel_(kernel) {}

  void visit(const clang::Stmt* statement, const clang::CompoundStmt* parent, bool inside_loop) {
    if (statement == nullptr) {
      return;
    }
    const clang::Stmt* bare = statement;
    if (const auto* attributed = dyn_cast<clang::AttributedStmt>(statement)) {
      bare = attributed->getSubStmt();
    }
    const auto* loop = dyn_cast<clang::ForStmt>(bare);
    if (loop != nullptr && parent != nullptr && add(*loop, statement, parent, inside_loop)) {
      return;
    }
    const auto* braces = dyn_cast<clang::CompoundStmt>(bare);
    inside_loop = inside_loop || isa<clang::ForStmt, clang::WhileStmt, clang::DoStmt>(bare);
    for (const clang::Stmt* child : bare->children()) {
      visit(child, braces, inside_loop);
    }
  }

  std::vector<Stages> found;

private:
  bool add(const clang::ForStmt& loop, const clang::Stmt* statement,
           const clang::CompoundStmt* parent, bool inside_loop) {
    Stages stages;
    stages.accumulators = accumulators_of(loop);
    if (stages.accumulators.empty()) {
      return false;
    }
    stages.kernel = &kernel_;
    stages.parent = parent;
    stages.statement = statement;
    stages.loop = &loop;
    stages.inside_loop = inside_loop;
    add_body(stages);
    add_epilogue(stages);
    found.push_back(std::move(stages));
    return true;
  }

  const clang::FunctionDecl& kernel_;
};

void find_in(const clang::DeclContext& context, std::vector<Stages>& found) {
  for (const clang::Decl* decl : context.decls()) {
    if (isa<clang::NamespaceDecl, clang::LinkageSpecDecl>(decl)) {
      find_in(*dyn_cast<clang::DeclContext>(decl), found);
    }
    const auto* function = dyn_cast<clang::FunctionDecl>(decl);
    if (function != nullptr && function->hasAttr<clang::CUDAGlobalAttr>() &&
        function->doesThisDeclarationHaveABody()) {
      Finder finder(*function);
      finder.visit(function->getBody(), nullptr, false);
      std::ranges::move(finder.found, std::back_inserter(found));
    }
  }
}

} // namespace

std::vector<Stages> find_stages(const Kernel& kernel) {
  std::vector<Stages> found;
  find_in(*kernel.ast().getTranslationUnitDecl(), found);
  return found;
}

} // namespace evo
