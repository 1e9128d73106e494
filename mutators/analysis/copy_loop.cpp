#include "mutators/analysis/copy_loop.hpp"

#include <algorithm>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/hinted_access.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

bool is_float(clang::QualType type) {
  return !type.isVolatileQualified() && type->isSpecificBuiltinType(clang::BuiltinType::Float);
}

/// Definitions of integers from registers alone: they may run under fewer conditions.
bool is_plain(const clang::DeclStmt& definition) {
  const Accesses accesses = accesses_of(definition);
  return accesses.opaque == nullptr &&
         std::ranges::all_of(definition.decls(),
                             [](const clang::Decl* decl) {
                               const auto* variable = dyn_cast<clang::VarDecl>(decl);
                               return variable != nullptr && variable->hasLocalStorage() &&
                                      variable->hasInit() && variable->getType()->isIntegerType();
                             }) &&
         std::ranges::all_of(accesses.list, [](const MemoryAccess& access) {
           return access.memory.space == Space::Register;
         });
}

/// The variables that code defines, and whether it may be left early.
struct Inside {
  std::set<const clang::Decl*> variables;
  bool leaves = false;
};

void look_inside(const clang::Stmt& code, Inside& inside) {
  if (const auto* definition = dyn_cast<clang::DeclStmt>(&code)) {
    inside.variables.insert(definition->decl_begin(), definition->decl_end());
  }
  inside.leaves =
      inside.leaves ||
      clang::isa<clang::ReturnStmt, clang::BreakStmt, clang::ContinueStmt, clang::GotoStmt>(code);
  for (const clang::Stmt* child : code.children()) {
    if (child != nullptr) {
      look_inside(*child, inside);
    }
  }
}

/// Takes a body apart; false where it is not of CopyLoop's form.
bool take(const clang::Stmt* statement, CopyLoop& copy) {
  if (const auto* braces = dyn_cast<clang::CompoundStmt>(statement)) {
    for (const clang::Stmt* child : braces->body()) {
      const auto* definition = dyn_cast<clang::DeclStmt>(child);
      if (child == braces->body_back()) {
        return take(child, copy);
      }
      if (copy.computation.empty() && definition != nullptr && is_plain(*definition)) {
        copy.definitions.push_back(definition);
      } else {
        copy.computation.push_back(child);
      }
    }
    return false;
  }
  if (const auto* branch = dyn_cast<clang::IfStmt>(statement)) {
    copy.conditions.push_back(branch->getCond());
    return copy.computation.empty() && branch->getElse() == nullptr && !branch->hasInitStorage() &&
           !branch->hasVarStorage() && !branch->isConstexpr() && take(branch->getThen(), copy);
  }
  if (const auto store = hinted_store(statement)) {
    copy.hinted_store = store->call;
    copy.place = dyn_cast<clang::ArraySubscriptExpr>(store->place);
    copy.value = store->value;
    return copy.place != nullptr && is_float(copy.place->getType());
  }
  const auto* assignment = dyn_cast<clang::BinaryOperator>(statement);
  if (assignment == nullptr || assignment->getOpcode() != clang::BO_Assign) {
    return false;
  }
  copy.place = dyn_cast<clang::ArraySubscriptExpr>(assignment->getLHS()->IgnoreParens());
  copy.value = assignment->getRHS();
  return copy.place != nullptr && is_float(copy.place->getType());
}

/// The element that an expression reads, or nullptr.
const clang::ArraySubscriptExpr* element_read(const clang::Expr* expr) {
  if (const auto load = hinted_load(expr)) {
    const auto* element = dyn_cast<clang::ArraySubscriptExpr>(load->place);
    return element != nullptr && is_float(element->getType()) ? element : nullptr;
  }
  const auto* cast = dyn_cast<clang::ImplicitCastExpr>(expr->IgnoreParens());
  const auto* element =
      cast == nullptr || cast->getCastKind() != clang::CK_LValueToRValue
          ? nullptr
          : dyn_cast<clang::ArraySubscriptExpr>(cast->getSubExpr()->IgnoreParens());
  return element != nullptr && is_float(element->getType()) ? element : nullptr;
}

const clang::CallExpr* hinted_call(const clang::Expr* expr) {
  const auto load = hinted_load(expr);
  return load ? load->call : nullptr;
}

/// A choice between two elements is an lvalue itself; one with a constant is not.
void take_value(CopyLoop& copy) {
  copy.read = element_read(copy.value);
  copy.hinted_load = hinted_call(copy.value);
  const auto* choice = dyn_cast<clang::ConditionalOperator>(copy.value->IgnoreParens());
  if (choice != nullptr && is_float(choice->getType())) {
    copy.guard = choice->getCond();
    copy.read = element_read(choice->getTrueExpr());
    copy.hinted_load = hinted_call(choice->getTrueExpr());
    copy.otherwise = choice->getFalseExpr();
  }
}

} // namespace

std::optional<CopyLoop> copy_loop(const DeviceLoop& loop) {
  CopyLoop copy;
  copy.loop = loop;
  const clang::Stmt& body = *loop.counted.loop->getBody();
  if (!take(&body, copy)) {
    return std::nullopt;
  }
  take_value(copy);
  copy.to = memory_of(*copy.place);
  copy.from = copy.read == nullptr ? Memory{Space::Register} : memory_of(*copy.read);
  for (const MemoryAccess& access : accesses_of(*copy.value).list) {
    copy.from = access.memory.space > copy.from.space ? access.memory : copy.from;
  }
  const Accesses accesses = accesses_of(body);
  Inside inside;
  for (const clang::Stmt* part : copy.computation) {
    look_inside(*part, inside);
  }
  const bool known = !inside.leaves && accesses.opaque == nullptr && accesses.barriers.empty() &&
                     std::ranges::none_of(accesses.list, [&](const MemoryAccess& access) {
                       const bool other_write = access.writes && access.place != nullptr &&
                                                access.place != copy.place &&
                                                !inside.variables.contains(access.memory.variable);
                       return access.memory.space == Space::Unknown || other_write ||
                              (access.reads && access.memory == copy.to);
                     });
  return known ? std::optional(copy) : std::nullopt;
}

std::optional<DealtIndex> dealt_index(const Kernel& kernel, const CopyLoop& copy) {
  const clang::VarDecl& step = *copy.loop.counted.counter;
  const auto is_step = [&](const clang::Expr* expr) {
    const auto* reference = dyn_cast<clang::DeclRefExpr>(expr->IgnoreParenImpCasts());
    return reference != nullptr && reference->getDecl() == &step;
  };
  for (const clang::DeclStmt* definition : copy.definitions) {
    const auto* index = definition->isSingleDecl()
                            ? dyn_cast<clang::VarDecl>(definition->getSingleDecl())
                            : nullptr;
    const auto* sum =
        index == nullptr ? nullptr
                         : dyn_cast<clang::BinaryOperator>(index->getInit()->IgnoreParenImpCasts());
    const auto* product =
        sum == nullptr || sum->getOpcode() != clang::BO_Add
            ? nullptr
            : dyn_cast<clang::BinaryOperator>(sum->getRHS()->IgnoreParenImpCasts());
    if (product == nullptr || product->getOpcode() != clang::BO_Mul ||
        !is_step(product->getLHS()) || mentions(*sum->getLHS(), step)) {
      continue;
    }
    if (const auto stride = constant_value(kernel, *product->getRHS())) {
      return DealtIndex{index, sum->getLHS(), *stride};
    }
  }
  return std::nullopt;
}

} // namespace evo
