#include "mutators/analysis/elementwise_update.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/syntax_visitor.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

class Walk : public SyntaxVisitor {
public:
  Walk(const Kernel& kernel, const ElementwiseUpdate& update, const UpdateVisitor& visitor)
      : kernel_(kernel), update_(update), visitor_(visitor) {}

  bool TraverseStmt(clang::Stmt* statement) override {
    const auto* expr = clang::dyn_cast_or_null<clang::Expr>(statement);
    if (expr != nullptr && visitor_.skip && visitor_.skip(*expr)) {
      return true;
    }
    const auto part = expr == nullptr ? std::nullopt : part_of(*expr);
    if (!part) {
      return SyntaxVisitor::TraverseStmt(statement);
    }
    if (visitor_.part) {
      visitor_.part(*expr, *part);
    }
    return true;
  }
  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
    if (visitor_.use) {
      visitor_.use(*use);
    }
    return true;
  }
  bool VisitVarDecl(clang::VarDecl* variable) override {
    if (visitor_.local) {
      visitor_.local(*variable);
    }
    return true;
  }

private:
  std::optional<Part> part_of(const clang::Expr& expr) const {
    const clang::Expr* bare = expr.IgnoreParenImpCasts();
    if (std::ranges::any_of(update_.reads,
                            [&](const ElementRead& read) { return read.element == bare; })) {
      return Part::Element;
    }
    if (is(*bare, *update_.row())) {
      return Part::Row;
    }
    return is(*bare, *update_.column()) ? std::optional(Part::Column) : std::nullopt;
  }

  /// Whether an expression is a coordinate, under its name or written out.
  bool is(const clang::Expr& expr, const clang::Expr& coordinate) const {
    return same_expression(kernel_, &expr, &coordinate) ||
           (same_expression(kernel_, &definition_of(expr), &definition_of(coordinate)) &&
            !constant_value(kernel_, definition_of(coordinate)));
  }

  const Kernel& kernel_;
  const ElementwiseUpdate& update_;
  const UpdateVisitor& visitor_;
};

/// Whether a function of CUDA's header lets threads see each other or their order.
bool is_collective(const clang::FunctionDecl& function) {
  static constexpr std::array<llvm::StringRef, 5> marks{"sync", "shfl", "atomic", "fence", "clock"};
  const std::string name = function.getNameAsString();
  return std::ranges::any_of(
      marks, [&](llvm::StringRef mark) { return llvm::StringRef(name).contains(mark); });
}

/// Whether what a name leads to may differ between threads: threadIdx and the like, or a function
/// that uses them.
class ThreadIdentity : public SyntaxVisitor {
public:
  explicit ThreadIdentity(const clang::SourceManager& sources) : sources_(sources) {}

  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
    note(*use);
    return true;
  }

  void note(const clang::DeclRefExpr& use) {
    const clang::ValueDecl* decl = use.getDecl();
    const bool ours = sources_.isWrittenInMainFile(decl->getLocation());
    const auto* function = dyn_cast<clang::FunctionDecl>(decl);
    if (!ours) {
      found =
          found || isa<clang::VarDecl>(decl) || (function != nullptr && is_collective(*function));
    } else if (function != nullptr && seen_.insert(function->getDefinition()).second) {
      found = found || function->getDefinition() == nullptr;
      TraverseStmt(found ? nullptr : function->getDefinition()->getBody());
    }
  }

  bool found = false;

private:
  const clang::SourceManager& sources_;
  std::set<const clang::FunctionDecl*> seen_;
};

/// Nothing but the store, and reads of global memory.
bool touches_only_its_element(const ElementwiseUpdate& update) {
  const Accesses accesses = accesses_of(*update.kernel->getBody());
  return accesses.opaque == nullptr && accesses.barriers.empty() &&
         std::ranges::all_of(accesses.list, [&](const MemoryAccess& access) {
           const Space space = access.memory.space;
           return space == Space::Register ||
                  (space == Space::Global &&
                   (!access.writes || access.statement == update.store.assignment));
         });
}

bool is_early_return(const ElementwiseUpdate& update, const clang::Stmt& statement) {
  const auto* branch = dyn_cast<clang::IfStmt>(&statement);
  return branch != nullptr &&
         std::ranges::any_of(update.store.conditions, [&](const Condition& condition) {
           return condition.expression == branch->getCond();
         });
}

/// The statements that run before the store, in order; nullopt if any could run after it.
std::optional<std::vector<const clang::Stmt*>> statements_before(const ElementwiseUpdate& update) {
  std::vector<const clang::Stmt*> before;
  const auto& around = update.store.around;
  for (std::size_t depth = around.size(); depth-- > 0;) {
    const auto* braces = dyn_cast<clang::CompoundStmt>(around[depth]);
    const clang::Stmt* inner = depth == 0 ? update.store.assignment : around[depth - 1];
    if (braces == nullptr) {
      continue;
    }
    if (braces->body_back() != inner) {
      return std::nullopt;
    }
    for (const clang::Stmt* statement : braces->body()) {
      if (statement != inner && !is_early_return(update, *statement)) {
        before.push_back(statement);
      }
    }
  }
  return before;
}

/// Drops the definitions that nothing needs once the coordinates are given.
void drop_unneeded(const Kernel& kernel, ElementwiseUpdate& update) {
  std::set<const clang::ValueDecl*> needed;
  const UpdateVisitor note{
      .use = [&](const clang::DeclRefExpr& use) { needed.insert(use.getDecl()); }};
  visit(kernel, update, *update.store.assignment->getRHS(), note);
  for (const Condition& condition : update.store.conditions) {
    visit(kernel, update, *condition.expression, note);
  }
  std::vector<const clang::Stmt*> kept;
  for (std::size_t i = update.statements.size(); i-- > 0;) { // uses stand behind definitions
    const clang::Stmt* statement = update.statements[i];
    const auto* definition = dyn_cast<clang::DeclStmt>(statement);
    if (definition == nullptr || std::ranges::any_of(definition->decls(), [&](clang::Decl* decl) {
          return needed.contains(dyn_cast<clang::ValueDecl>(decl));
        })) {
      kept.insert(kept.begin(), statement);
      visit(kernel, update, *statement, note);
    }
  }
  update.statements = std::move(kept);
}

bool depends_on_thread(const Kernel& kernel, const ElementwiseUpdate& update) {
  ThreadIdentity identity(kernel.ast().getSourceManager());
  visit(kernel, update, {.use = [&](const clang::DeclRefExpr& use) { identity.note(use); }});
  return identity.found;
}

/// The same for a condition, with the definitions of what it names.
bool depends_on_thread(const Kernel& kernel, const ElementwiseUpdate& update,
                       const clang::Expr& condition) {
  ThreadIdentity identity(kernel.ast().getSourceManager());
  std::set<const clang::ValueDecl*> seen;
  const std::function<void(const clang::Expr&)> look = [&](const clang::Expr& expr) {
    visit(kernel, update, expr, {.use = [&](const clang::DeclRefExpr& use) {
            identity.note(use);
            const auto* variable = dyn_cast<clang::VarDecl>(use.getDecl());
            if (variable != nullptr && variable->isLocalVarDecl() && variable->hasInit() &&
                seen.insert(variable).second) {
              look(*variable->getInit());
            }
          }});
  };
  look(condition);
  return identity.found;
}

bool changes_a_parameter(const clang::FunctionDecl& function) {
  return std::ranges::any_of(function.parameters(), [&](const clang::ParmVarDecl* parameter) {
    return may_change(*function.getBody(), *parameter);
  });
}

/// One store, with all statements before it.
std::optional<ElementwiseUpdate> single_store(const Kernel& kernel,
                                              const clang::FunctionDecl& function,
                                              const clang::ParmVarDecl& array) {
  const auto accesses = element_accesses(kernel, function, array);
  if (!accesses || accesses->stores.size() != 1 || changes_a_parameter(function)) {
    return std::nullopt;
  }
  ElementwiseUpdate update{&function, &array, accesses->stores.front(), accesses->reads, {}};
  const bool same_element = std::ranges::all_of(update.reads, [&](const ElementRead& read) {
    return same_index(kernel, read.index, update.store.index);
  });
  if (!same_element || update.store.index.column.size() != 1 || !touches_only_its_element(update)) {
    return std::nullopt;
  }
  auto statements = statements_before(update);
  if (!statements) {
    return std::nullopt;
  }
  update.statements = std::move(*statements);
  return update;
}

/// One store of one element, in no loop, with all statements before it.
std::optional<ElementwiseUpdate> elementwise(const Kernel& kernel,
                                             const clang::FunctionDecl& function,
                                             const clang::ParmVarDecl& array) {
  auto update = single_store(kernel, function, array);
  return update && update->store.loops.empty() ? std::move(update) : std::nullopt;
}

/// Without what nothing needs; nullopt where the rest depends on the thread.
std::optional<ElementwiseUpdate> completed(const Kernel& kernel, ElementwiseUpdate update) {
  drop_unneeded(kernel, update);
  return depends_on_thread(kernel, update) ? std::nullopt : std::optional(std::move(update));
}

/// Another matrix that the kernel reads at the element that it stores, and nowhere else.
void take_old_element(const Kernel& kernel, ElementValue& value) {
  const ElementwiseUpdate& code = value.code;
  for (const clang::ParmVarDecl* parameter : code.kernel->parameters()) {
    const bool alike = parameter != code.array && parameter->getType()->isPointerType() &&
                       kernel.ast().hasSameUnqualifiedType(parameter->getType()->getPointeeType(),
                                                           code.store.element->getType());
    const auto accesses = alike ? element_accesses(kernel, *code.kernel, *parameter) : std::nullopt;
    if (accesses && accesses->stores.empty() && !accesses->reads.empty() &&
        std::ranges::all_of(accesses->reads, [&](const ElementRead& read) {
          return same_index(kernel, read.index, code.store.index);
        })) {
      value.old = parameter;
      value.code.reads = accesses->reads;
      return;
    }
  }
}

/// Whether no statement needs what an earlier round of a loop left, or which round it is.
bool is_alike_in_all_rounds(const Kernel& kernel, const ElementwiseUpdate& code) {
  const clang::SourceManager& sources = kernel.ast().getSourceManager();
  const auto carries = [&](const clang::Stmt& statement) {
    const auto writes = accesses_of(statement).list;
    return std::ranges::any_of(code.store.loops, [&](const CountedLoop& around) {
      return contains(*around.loop, statement) &&
             std::ranges::any_of(writes, [&](const MemoryAccess& access) {
               return access.writes && access.memory.variable != nullptr &&
                      sources.isBeforeInTranslationUnit(access.memory.variable->getLocation(),
                                                        around.loop->getBeginLoc());
             });
    });
  };
  std::set<const clang::ValueDecl*> defined;
  std::set<const clang::ValueDecl*> used;
  visit(kernel, code,
        {.use =
             [&](const clang::DeclRefExpr& use) {
               const auto* variable = dyn_cast<clang::VarDecl>(use.getDecl());
               if (variable != nullptr && variable->isLocalVarDecl()) {
                 used.insert(variable);
               }
             },
         .local = [&](const clang::VarDecl& local) { defined.insert(&local); }});
  return std::ranges::includes(defined, used) &&
         std::ranges::none_of(code.statements,
                              [&](const clang::Stmt* statement) { return carries(*statement); });
}

} // namespace

void visit(const Kernel& kernel, const ElementwiseUpdate& update, const clang::Stmt& code,
           const UpdateVisitor& visitor) {
  Walk(kernel, update, visitor).TraverseStmt(const_cast<clang::Stmt*>(&code));
}

void visit(const Kernel& kernel, const ElementwiseUpdate& update, const UpdateVisitor& visitor) {
  for (const clang::Stmt* statement : update.statements) {
    visit(kernel, update, *statement, visitor);
  }
  for (const Condition& condition : update.store.conditions) {
    visit(kernel, update, *condition.expression, visitor);
  }
  visit(kernel, update, *update.store.assignment->getRHS(), visitor);
}

std::optional<ElementwiseUpdate> elementwise_update(const Kernel& kernel,
                                                    const clang::FunctionDecl& function,
                                                    const clang::ParmVarDecl& array) {
  auto update = elementwise(kernel, function, array);
  const bool updates =
      update && (update->store.assignment->isCompoundAssignmentOp() || !update->reads.empty());
  return updates ? completed(kernel, std::move(*update)) : std::nullopt;
}

std::optional<ElementwiseUpdate> elementwise_store(const Kernel& kernel,
                                                   const clang::FunctionDecl& function,
                                                   const clang::ParmVarDecl& array) {
  auto store = elementwise(kernel, function, array);
  if (!store) {
    return std::nullopt;
  }
  std::vector<Condition> conditions = conjuncts(store->store.conditions);
  std::erase_if(conditions, [&](const Condition& condition) {
    return depends_on_thread(kernel, *store, *condition.expression);
  });
  store->store.conditions = std::move(conditions);
  return completed(kernel, std::move(*store));
}

std::optional<ElementValue> element_value(const Kernel& kernel, const clang::FunctionDecl& function,
                                          const clang::ParmVarDecl& array) {
  auto code = single_store(kernel, function, array);
  if (!code || !code->reads.empty() || code->store.assignment->isCompoundAssignmentOp()) {
    return std::nullopt;
  }
  ElementValue value{std::move(*code)};
  value.code.store.conditions.clear();
  take_old_element(kernel, value);
  auto needed = completed(kernel, std::move(value.code));
  if (!needed || !is_alike_in_all_rounds(kernel, *needed)) {
    return std::nullopt;
  }
  value.code = std::move(*needed);
  return value;
}

} // namespace evo
