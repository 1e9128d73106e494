#include "mutators/analysis/accesses.hpp"

#include <algorithm>
#include <map>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/Stmt.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/async_copies.hpp"
#include "mutators/analysis/hinted_access.hpp"
#include "mutators/ptx_instruction.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

/// Whether `p = ...` or `&p` occurs: then the initialiser does not tell where p points.
bool is_reassigned(const clang::Stmt* statement, const clang::VarDecl* pointer) {
  if (statement == nullptr) {
    return false;
  }
  const auto is_pointer = [&](const clang::Expr* expr) {
    const auto* reference = dyn_cast<clang::DeclRefExpr>(expr->IgnoreParenImpCasts());
    return reference != nullptr && reference->getDecl() == pointer;
  };
  const auto* binary = dyn_cast<clang::BinaryOperator>(statement);
  const auto* unary = dyn_cast<clang::UnaryOperator>(statement);
  if ((binary != nullptr && binary->getOpcode() == clang::BO_Assign &&
       is_pointer(binary->getLHS())) ||
      (unary != nullptr && unary->getOpcode() == clang::UO_AddrOf &&
       is_pointer(unary->getSubExpr()))) {
    return true;
  }
  return std::ranges::any_of(statement->children(), [&](const clang::Stmt* child) {
    return is_reassigned(child, pointer);
  });
}

Memory memory_of_variable(const clang::VarDecl* variable) {
  if (variable->hasAttr<clang::CUDASharedAttr>()) {
    return {Space::Shared, variable};
  }
  const bool global = variable->hasGlobalStorage() && !variable->isConstexpr() &&
                      !variable->getType().isConstQualified();
  return {global ? Space::Global : Space::Register, variable};
}

/// The constructor call that Clang gives a variable of struct type without an initialiser.
bool does_nothing(const clang::Expr* initialiser) {
  const auto* construction = dyn_cast<clang::CXXConstructExpr>(initialiser);
  return construction != nullptr && construction->getNumArgs() == 0 &&
         construction->getConstructor()->isTrivial();
}

class AccessCollector {
public:
  void visit(const clang::Stmt* statement);
  Memory owner(const clang::Expr* expr) const;

  Accesses result;

private:
  void visit_children(const clang::Stmt* statement);
  Memory visit_value(const clang::Expr* expr);
  void visit_place(const clang::Expr* expr);
  void visit_call(const clang::CallExpr* call);
  void visit_copy(const clang::CallExpr* call);
  void visit_argument(const clang::CallExpr* call, const clang::Expr* argument,
                      clang::QualType parameter);
  void visit_body(const clang::CallExpr* call, const clang::FunctionDecl* callee);
  void visit_assembly(const clang::GCCAsmStmt* assembly);
  Memory owner_of_address(const clang::Expr* number) const;
  void define(const clang::DeclStmt* statement);
  void touch(const clang::Expr* place, bool reads, bool writes,
             const clang::Stmt* statement = nullptr, std::optional<Memory> source = {});
  void add(const MemoryAccess& access);
  void give_up(const clang::Stmt* statement) {
    result.opaque = result.opaque != nullptr ? result.opaque : statement;
  }
  Memory owner_behind(const clang::VarDecl* pointer) const;

  std::map<const clang::VarDecl*, const clang::Expr*> arguments_; // of the calls being visited
  std::vector<const clang::FunctionDecl*> calls_;
};

/// The memory that a pointer or reference variable leads to.
Memory AccessCollector::owner_behind(const clang::VarDecl* pointer) const {
  const auto* function = dyn_cast<clang::FunctionDecl>(pointer->getDeclContext());
  if (function == nullptr ||
      (pointer->getType()->isPointerType() && is_reassigned(function->getBody(), pointer))) {
    return {};
  }
  if (const auto bound = arguments_.find(pointer); bound != arguments_.end()) {
    return owner(bound->second);
  }
  if (isa<clang::ParmVarDecl>(pointer)) {
    return function->hasAttr<clang::CUDAGlobalAttr>() ? Memory{Space::Global, pointer} : Memory{};
  }
  return pointer->getInit() == nullptr ? Memory{} : owner(pointer->getInit());
}

Memory AccessCollector::owner(const clang::Expr* expr) const {
  expr = expr->IgnoreParens();
  if (const auto* cast = dyn_cast<clang::CastExpr>(expr)) {
    if (cast->getCastKind() != clang::CK_LValueToRValue) {
      return owner(cast->getSubExpr());
    }
    const auto* loaded = dyn_cast<clang::DeclRefExpr>(cast->getSubExpr()->IgnoreParens());
    const auto* pointer = loaded == nullptr ? nullptr : dyn_cast<clang::VarDecl>(loaded->getDecl());
    return pointer == nullptr || !pointer->getType()->isPointerType() ? Memory{}
                                                                      : owner_behind(pointer);
  }
  if (const auto* reference = dyn_cast<clang::DeclRefExpr>(expr)) {
    const auto* variable = dyn_cast<clang::VarDecl>(reference->getDecl());
    if (variable == nullptr) {
      return {};
    }
    return variable->getType()->isReferenceType() ? owner_behind(variable)
                                                  : memory_of_variable(variable);
  }
  if (const auto* subscript = dyn_cast<clang::ArraySubscriptExpr>(expr)) {
    return owner(subscript->getBase());
  }
  if (const auto* member = dyn_cast<clang::MemberExpr>(expr)) {
    Memory memory = owner(member->getBase());
    if (memory.member == nullptr) {
      memory.member = dyn_cast<clang::FieldDecl>(member->getMemberDecl());
    }
    return memory;
  }
  if (const auto* unary = dyn_cast<clang::UnaryOperator>(expr)) {
    const bool through = unary->getOpcode() == clang::UO_Deref ||
                         unary->getOpcode() == clang::UO_AddrOf || unary->isIncrementDecrementOp();
    return through ? owner(unary->getSubExpr()) : Memory{};
  }
  if (const auto* sum = dyn_cast<clang::BinaryOperator>(expr); sum && sum->isAdditiveOp()) {
    return owner(sum->getLHS()->getType()->isPointerType() ? sum->getLHS() : sum->getRHS());
  }
  if (const auto* choice = dyn_cast<clang::ConditionalOperator>(expr)) {
    const Memory memory = owner(choice->getTrueExpr());
    return memory == owner(choice->getFalseExpr()) ? memory : Memory{};
  }
  return {};
}

void AccessCollector::add(const MemoryAccess& access) {
  const bool local_to_call = access.memory.space == Space::Register &&
                             std::ranges::any_of(calls_, [&](const clang::FunctionDecl* callee) {
                               return access.memory.variable->getDeclContext() == callee;
                             });
  if (!local_to_call) {
    result.list.push_back(access);
  }
}

void AccessCollector::touch(const clang::Expr* place, bool reads, bool writes,
                            const clang::Stmt* statement, std::optional<Memory> source) {
  const auto* choice = dyn_cast<clang::ConditionalOperator>(place->IgnoreParenImpCasts());
  if (choice != nullptr && !place->getType()->isPointerType()) {
    visit(choice->getCond());
    touch(choice->getTrueExpr(), reads, writes, statement, source);
    touch(choice->getFalseExpr(), reads, writes, statement, source);
    return;
  }
  visit_place(place);
  add({owner(place), reads, writes, place, statement, source});
}

/// The index expressions and pointers that an lvalue or address is computed from.
void AccessCollector::visit_place(const clang::Expr* expr) {
  expr = expr->IgnoreParens();
  if (const auto* cast = dyn_cast<clang::CastExpr>(expr)) {
    if (cast->getCastKind() == clang::CK_LValueToRValue) {
      touch(cast->getSubExpr(), true, false);
    } else {
      visit_place(cast->getSubExpr());
    }
  } else if (const auto* subscript = dyn_cast<clang::ArraySubscriptExpr>(expr)) {
    visit_place(subscript->getBase());
    visit(subscript->getIdx());
  } else if (const auto* member = dyn_cast<clang::MemberExpr>(expr)) {
    visit_place(member->getBase());
  } else if (const auto* unary = dyn_cast<clang::UnaryOperator>(expr);
             unary != nullptr &&
             (unary->getOpcode() == clang::UO_Deref || unary->getOpcode() == clang::UO_AddrOf)) {
    visit_place(unary->getSubExpr());
  } else if (const auto* sum = dyn_cast<clang::BinaryOperator>(expr);
             sum != nullptr && sum->isAdditiveOp() && sum->getType()->isPointerType()) {
    visit_place(sum->getLHS());
    visit_place(sum->getRHS());
  } else if (!isa<clang::DeclRefExpr>(expr)) {
    visit(expr);
  }
}

/// An expression used for its value, also where C++ copies a struct without a conversion. Returns
/// the farthest memory that the value comes from.
Memory AccessCollector::visit_value(const clang::Expr* expr) {
  const std::size_t before = result.list.size();
  if (const auto* temporary = dyn_cast<clang::MaterializeTemporaryExpr>(expr)) {
    visit(temporary->getSubExpr());
  } else if (expr->isGLValue()) {
    touch(expr, true, false);
  } else {
    visit(expr);
  }
  Memory source{Space::Register};
  for (std::size_t i = before; i < result.list.size(); ++i) {
    const MemoryAccess& access = result.list[i];
    if (access.reads && access.memory.space > source.space) {
      source = access.memory;
    }
  }
  return source;
}

void AccessCollector::visit_children(const clang::Stmt* statement) {
  for (const clang::Stmt* child : statement->children()) {
    visit(child);
  }
}

void AccessCollector::define(const clang::DeclStmt* statement) {
  for (const clang::Decl* decl : statement->decls()) {
    const auto* variable = dyn_cast<clang::VarDecl>(decl);
    if (variable == nullptr || variable->getInit() == nullptr ||
        does_nothing(variable->getInit())) {
      continue;
    }
    if (variable->getType()->isReferenceType()) {
      visit_place(variable->getInit());
      continue;
    }
    const Memory source = visit_value(variable->getInit());
    add({memory_of_variable(variable), false, true, nullptr, statement, source});
  }
}

/// What ldmatrix reads is read where the pointer becomes a number (visit_call).
void AccessCollector::visit_assembly(const clang::GCCAsmStmt* assembly) {
  const PtxInstruction* instruction = ptx_instruction(*assembly);
  Memory source{Space::Register};
  for (unsigned i = 0; i < assembly->getNumInputs(); ++i) {
    source = visit_value(assembly->getInputExpr(i));
  }
  if (instruction != nullptr && instruction->kind == PtxInstruction::Kind::LoadMatrices) {
    source = owner_of_address(assembly->getInputExpr(0));
  }
  for (unsigned i = 0; i < assembly->getNumOutputs(); ++i) {
    const bool updates = assembly->isOutputPlusConstraint(i);
    touch(assembly->getOutputExpr(i), updates, true, assembly,
          updates || instruction == nullptr ? std::nullopt : std::optional(source));
  }
  if (instruction == nullptr) {
    give_up(assembly);
  }
}

/// The memory that a number stands for which was a pointer.
Memory AccessCollector::owner_of_address(const clang::Expr* number) const {
  number = number->IgnoreParenCasts();
  if (const auto* call = dyn_cast<clang::CallExpr>(number)) {
    return call->getNumArgs() == 1 ? owner(call->getArg(0)) : Memory{};
  }
  const auto* reference = dyn_cast<clang::DeclRefExpr>(number);
  const auto* variable =
      reference == nullptr ? nullptr : dyn_cast<clang::VarDecl>(reference->getDecl());
  return variable != nullptr && variable->getInit() != nullptr &&
                 variable->getType().isConstQualified()
             ? owner_of_address(variable->getInit())
             : Memory{};
}

void AccessCollector::visit_argument(const clang::CallExpr* call, const clang::Expr* argument,
                                     clang::QualType parameter) {
  if (parameter->isPointerType() || parameter->isLValueReferenceType()) {
    const bool writes = !parameter->getPointeeType().isConstQualified();
    touch(argument, true, writes, writes ? call : nullptr);
  } else {
    visit_value(argument);
  }
}

/// It reads before it writes, as an assignment does.
void AccessCollector::visit_copy(const clang::CallExpr* call) {
  touch(call->getArg(1), true, false);
  for (unsigned i = 2; i < call->getNumArgs(); ++i) {
    visit_value(call->getArg(i));
  }
  touch(call->getArg(0), false, true, call, owner(call->getArg(1)));
}

void AccessCollector::visit_body(const clang::CallExpr* call, const clang::FunctionDecl* callee) {
  for (unsigned i = 0; i < callee->getNumParams(); ++i) {
    const clang::ParmVarDecl* parameter = callee->getParamDecl(i);
    if (parameter->getType()->isReferenceType()) {
      visit_place(call->getArg(i));
    } else {
      visit_value(call->getArg(i));
    }
    arguments_[parameter] = call->getArg(i);
  }
  calls_.push_back(callee);
  visit(callee->getBody());
  calls_.pop_back();
}

void AccessCollector::visit_call(const clang::CallExpr* call) {
  const clang::FunctionDecl* callee = call->getDirectCallee();
  if (callee == nullptr || callee->isVariadic() || isa<clang::CXXMemberCallExpr>(call)) {
    visit_children(call);
    return give_up(call);
  }
  if (callee->getDeclName().isIdentifier() && callee->getName() == "__syncthreads") {
    result.barriers.push_back(call);
    return;
  }
  if (async_copy(call) != nullptr) {
    return visit_copy(call);
  }
  if (const auto load = hinted_load(call)) {
    return touch(load->place, true, false);
  }
  if (const auto store = hinted_store(call)) {
    const Memory source = visit_value(store->value);
    return touch(store->place, false, true, call, source);
  }
  if (const clang::FunctionDecl* definition = callee->getDefinition()) {
    if (std::ranges::count(calls_, definition) != 0) {
      return give_up(call);
    }
    return visit_body(call, definition);
  }
  for (unsigned i = 0; i < call->getNumArgs(); ++i) {
    visit_argument(call, call->getArg(i), callee->getParamDecl(i)->getType());
  }
  const clang::SourceManager& sources = callee->getASTContext().getSourceManager();
  if (sources.isInMainFile(callee->getLocation())) {
    give_up(call);
  }
}

void AccessCollector::visit(const clang::Stmt* statement) {
  if (statement == nullptr || isa<clang::UnaryExprOrTypeTraitExpr>(statement)) {
    return;
  }
  if (const auto* cast = dyn_cast<clang::CastExpr>(statement)) {
    if (cast->getCastKind() == clang::CK_LValueToRValue) {
      return touch(cast->getSubExpr(), true, false);
    }
    return cast->getCastKind() == clang::CK_ArrayToPointerDecay ? visit_place(cast)
                                                                : visit(cast->getSubExpr());
  }
  if (const auto* binary = dyn_cast<clang::BinaryOperator>(statement);
      binary != nullptr && binary->isAssignmentOp()) {
    const Memory source = visit_value(binary->getRHS());
    if (binary->isCompoundAssignmentOp()) {
      return touch(binary->getLHS(), true, true, binary);
    }
    return touch(binary->getLHS(), false, true, binary, source);
  }
  if (const auto* unary = dyn_cast<clang::UnaryOperator>(statement)) {
    if (unary->isIncrementDecrementOp()) {
      return touch(unary->getSubExpr(), true, true, unary);
    }
    return unary->getOpcode() == clang::UO_AddrOf ? visit_place(unary) : visit(unary->getSubExpr());
  }
  if (const auto* call = dyn_cast<clang::CXXOperatorCallExpr>(statement);
      call != nullptr && call->getOperator() == clang::OO_Equal && call->getNumArgs() == 2) {
    const Memory source = visit_value(call->getArg(1));
    return touch(call->getArg(0), false, true, call, source);
  }
  if (const auto* call = dyn_cast<clang::CallExpr>(statement)) {
    return visit_call(call);
  }
  if (const auto* construction = dyn_cast<clang::CXXConstructExpr>(statement)) {
    for (const clang::Expr* argument : construction->arguments()) {
      visit_value(argument);
    }
    return;
  }
  if (const auto* definition = dyn_cast<clang::DeclStmt>(statement)) {
    return define(definition);
  }
  if (const auto* assembly = dyn_cast<clang::GCCAsmStmt>(statement)) {
    return visit_assembly(assembly);
  }
  if (isa<clang::LambdaExpr>(statement)) {
    return give_up(statement);
  }
  visit_children(statement);
}

} // namespace

Accesses accesses_of(const clang::Stmt& statement) {
  AccessCollector collector;
  collector.visit(&statement);
  return std::move(collector.result);
}

Memory memory_of(const clang::Expr& expr) {
  return AccessCollector().owner(&expr);
}

} // namespace evo
