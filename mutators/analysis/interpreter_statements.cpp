#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/interpreter.hpp"
#include "mutators/analysis/syntax_visitor.hpp"

namespace evo {
namespace {

/// A struct of scalars is a value in a variable; one that holds an array is memory.
bool is_memory(clang::QualType type) {
  if (type->isArrayType()) {
    return true;
  }
  const clang::RecordDecl* declaration = type->getAsRecordDecl();
  return declaration != nullptr &&
         std::ranges::any_of(declaration->fields(), [](const clang::FieldDecl* field) {
           return !field->getType()->isScalarType();
         });
}

/// Decides whether a statement does nothing but accesses that its inputs determine.
class PurityVisitor : public SyntaxVisitor {
public:
  bool VisitVarDecl(clang::VarDecl* variable) override {
    inside.push_back(variable);
    return true;
  }
  bool VisitImplicitCastExpr(clang::ImplicitCastExpr* cast) override {
    const auto* read = clang::dyn_cast<clang::DeclRefExpr>(cast->getSubExpr()->IgnoreParens());
    if (cast->getCastKind() == clang::CK_LValueToRValue && read != nullptr) {
      reads.push_back(read);
    }
    return true;
  }
  bool VisitDeclRefExpr(clang::DeclRefExpr* reference) override {
    references.push_back(reference);
    return true;
  }
  bool VisitReturnStmt(clang::ReturnStmt*) override { return pure = false; }
  bool VisitBreakStmt(clang::BreakStmt*) override { return pure = false; }
  bool VisitContinueStmt(clang::ContinueStmt*) override { return pure = false; }
  bool VisitAsmStmt(clang::AsmStmt*) override { return pure = false; }
  bool VisitCXXThisExpr(clang::CXXThisExpr*) override { return pure = false; }
  bool VisitCallExpr(clang::CallExpr* call) override {
    const clang::FunctionDecl* callee = call->getDirectCallee();
    pure = callee != nullptr && is_harmless(*callee);
    return pure;
  }

  bool pure = true;
  std::vector<const clang::VarDecl*> inside;
  std::vector<const clang::DeclRefExpr*> reads;
  std::vector<const clang::DeclRefExpr*> references;

private:
  /// Calls of functions that work on their arguments alone, without a barrier.
  static bool is_harmless(const clang::FunctionDecl& function) {
    const clang::FunctionDecl* definition = function.getDefinition();
    if (definition == nullptr) {
      return function.getReturnType()->isFloatingType() ||
             function.getReturnType()->isIntegralOrEnumerationType();
    }
    class CalleeVisitor : public SyntaxVisitor {
    public:
      bool VisitCallExpr(clang::CallExpr* call) override {
        const clang::FunctionDecl* callee = call->getDirectCallee();
        return harmless = callee != nullptr && is_harmless(*callee);
      }
      bool VisitDeclRefExpr(clang::DeclRefExpr* reference) override {
        const auto* variable = clang::dyn_cast<clang::VarDecl>(reference->getDecl());
        return harmless =
                   variable == nullptr || !variable->hasGlobalStorage() || variable->isConstexpr();
      }
      bool harmless = true;
    } visitor;
    visitor.TraverseStmt(definition->getBody());
    return visitor.harmless;
  }
};

} // namespace

void Interpreter::execute(const clang::Stmt& statement) {
  if (!mask_.any()) {
    return;
  }
  step(statement);
  const bool candidate =
      observer_ != nullptr && !recording_ &&
      (clang::isa<clang::ForStmt>(statement) || clang::isa<clang::CompoundStmt>(statement));
  if (!candidate || !reuse(statement)) {
    execute_plain(statement);
  }
}

void Interpreter::execute_plain(const clang::Stmt& statement) {
  if (const auto* compound = clang::dyn_cast<clang::CompoundStmt>(&statement)) {
    for (const clang::Stmt* child : compound->body()) {
      execute(*child);
    }
  } else if (const auto* expression = clang::dyn_cast<clang::Expr>(&statement)) {
    discard(*expression);
  } else if (const auto* declaration = clang::dyn_cast<clang::DeclStmt>(&statement)) {
    declare(*declaration);
  } else if (const auto* choice = clang::dyn_cast<clang::IfStmt>(&statement)) {
    branch(*choice);
  } else if (const auto* for_loop = clang::dyn_cast<clang::ForStmt>(&statement)) {
    if (for_loop->getInit() != nullptr) {
      execute(*for_loop->getInit());
    }
    loop(for_loop->getCond(), *for_loop->getBody(), for_loop->getInc(), true);
  } else if (const auto* while_loop = clang::dyn_cast<clang::WhileStmt>(&statement)) {
    loop(while_loop->getCond(), *while_loop->getBody(), nullptr, true);
  } else if (const auto* do_loop = clang::dyn_cast<clang::DoStmt>(&statement)) {
    loop(do_loop->getCond(), *do_loop->getBody(), nullptr, false);
  } else if (const auto* attributed = clang::dyn_cast<clang::AttributedStmt>(&statement)) {
    execute(*attributed->getSubStmt());
  } else if (const auto* instruction = clang::dyn_cast<clang::GCCAsmStmt>(&statement)) {
    assembly(*instruction);
  } else if (!clang::isa<clang::NullStmt>(statement)) {
    leave(statement);
  }
}

void Interpreter::discard(const clang::Expr& expression) {
  const auto* call_expression = clang::dyn_cast<clang::CallExpr>(expression.IgnoreParens());
  if (call_expression != nullptr) {
    call(*call_expression); // what it refers to is not read
  } else {
    rvalue(expression);
  }
}

void Interpreter::leave(const clang::Stmt& statement) {
  Frame& frame = frames_.back();
  if (const auto* result = clang::dyn_cast<clang::ReturnStmt>(&statement)) {
    if (const clang::Expr* value = result->getRetValue()) {
      const bool first = std::holds_alternative<std::monostate>(frame.result);
      if (value->isGLValue()) {
        if (!first) {
          unknown(statement, "a second return of a reference is not followed");
        }
        frame.result = lvalue(*value);
      } else {
        Value ours = rvalue(*value);
        const auto* others = std::get_if<Value>(&frame.result);
        frame.result = others != nullptr ? merged(ours, *others) : ours;
      }
    }
    frame.returned |= mask_;
    mask_ = Mask(lanes_, false);
  } else if (clang::isa<clang::BreakStmt>(statement)) {
    mask_ = Mask(lanes_, false);
  } else if (clang::isa<clang::ContinueStmt>(statement)) {
    continued_.back() |= mask_;
    mask_ = Mask(lanes_, false);
  } else {
    unknown(statement, std::string("a ") + statement.getStmtClassName() + " is not followed");
  }
}

void Interpreter::declare(const clang::DeclStmt& statement) {
  for (const clang::Decl* declaration : statement.decls()) {
    if (const auto* variable = clang::dyn_cast<clang::VarDecl>(declaration)) {
      declare_variable(*variable, statement);
    } else if (const auto* assertion = clang::dyn_cast<clang::StaticAssertDecl>(declaration)) {
      if (ints(rvalue(*assertion->getAssertExpr()), statement)[0] == 0) {
        fault(statement, "a static_assert fails");
      }
    } else if (!clang::isa<clang::TypedefNameDecl>(declaration)) {
      unknown(statement, "a declaration of a " + std::string(declaration->getDeclKindName()) +
                             " is not followed");
    }
  }
}

void Interpreter::declare_variable(const clang::VarDecl& variable, const clang::Stmt& where) {
  if (variable.hasGlobalStorage()) {
    return; // found when it is used
  }
  const clang::Expr* initialiser = variable.getInit();
  if (variable.getType()->isReferenceType()) {
    const Reference target = lvalue(*initialiser);
    frames_.back().variables[&variable].refers = target;
    return;
  }
  if (is_memory(variable.getType())) {
    const bool followed = initialiser == nullptr || clang::isa<clang::InitListExpr>(initialiser) ||
                          clang::isa<clang::CXXConstructExpr>(initialiser);
    if (!followed) {
      unknown(where, "the initialiser of " + variable.getNameAsString() + " is not followed");
    }
    declare_array(variable, layouts_.of(variable));
    if (memory_ != nullptr && initialiser != nullptr &&
        clang::isa<clang::InitListExpr>(initialiser)) {
      initialise(std::get<Reference>(frames_.back().variables[&variable].refers).place,
                 *initialiser);
    }
    return;
  }
  Value value = initialiser != nullptr ? rvalue(*initialiser) : uninitialised(variable.getType());
  frames_.back().variables[&variable] = Variable{.value = std::move(value), .refers = {}};
}

void Interpreter::declare_array(const clang::VarDecl& variable, const LayoutPtr& layout) {
  const int array = array_of({.space = Array::Space::Local,
                              .name = variable.getNameAsString(),
                              .decl = &variable,
                              .element_bytes = unit_bytes(*layout)},
                             layout->bytes);
  frames_.back().variables[&variable].refers = Reference{nullptr, -1, Place{array, 0, layout}};
  if (memory_ != nullptr) {
    forget_memory(array);
  }
}

void Interpreter::initialise(const Place& target, const clang::Expr& initialiser) {
  const auto* list = clang::dyn_cast<clang::InitListExpr>(&initialiser);
  if (clang::isa<clang::ImplicitValueInitExpr>(initialiser)) {
    fill_with_zeros(target, initialiser);
  } else if (list == nullptr || target.layout->kind != Layout::Kind::Array) {
    store_followed(target, initialiser.getType(), rvalue(initialiser), initialiser);
  } else {
    Place element{target.array, target.offset, target.layout->element};
    for (std::int64_t i = 0; i < target.layout->count; ++i) {
      const auto index = static_cast<unsigned>(i);
      initialise(element,
                 index < list->getNumInits() ? *list->getInit(index) : *list->getArrayFiller());
      element.offset = Ints(element.offset[0] + element.layout->bytes);
    }
  }
}

void Interpreter::fill_with_zeros(const Place& target, const clang::Expr& initialiser) {
  const Array& array = arrays_[target.array];
  const bool integers = kernel_.ast().getBaseElementType(initialiser.getType())->isIntegerType();
  if (integers && (array.space != Array::Space::Local || array.element_bytes != register_bytes)) {
    return memory_->forget(target.array);
  }
  if (target.layout->kind == Layout::Kind::Record) {
    unknown(initialiser, "zeros in the structs of " + array.name + " are not followed");
  }
  for (std::int64_t at = 0; at < target.layout->bytes; at += array.element_bytes) {
    memory_->store(target.array, array, (target.offset[0] + at) / array.element_bytes, Ring{},
                   mask_);
  }
}

void Interpreter::branch(const clang::IfStmt& statement) {
  if (statement.getInit() != nullptr) {
    execute(*statement.getInit());
  }
  if (const clang::VarDecl* variable = statement.getConditionVariable()) {
    declare_variable(*variable, statement);
  }
  const Mask active = mask_;
  const Mask chosen = truth(rvalue(*statement.getCond()), *statement.getCond());
  mask_ = chosen;
  execute(*statement.getThen());
  const Mask after_then = mask_;
  mask_ = active;
  mask_ -= chosen;
  if (statement.getElse() != nullptr) {
    execute(*statement.getElse());
  }
  mask_ |= after_then;
}

void Interpreter::loop(const clang::Expr* condition, const clang::Stmt& body,
                       const clang::Expr* increment, bool condition_first) {
  const Mask active = mask_;
  continued_.emplace_back(lanes_, false);
  for (bool first = true; mask_.any(); first = false) {
    if (condition != nullptr && (condition_first || !first)) {
      mask_ = truth(rvalue(*condition), *condition);
      if (!mask_.any()) {
        break;
      }
    }
    execute(body);
    if (continued_.back().any()) {
      mask_ |= continued_.back();
      continued_.back() = Mask(lanes_, false);
    }
    if (increment != nullptr && mask_.any()) {
      rvalue(*increment);
    }
  }
  continued_.pop_back();
  mask_ = active;
  mask_ -= frames_.back().returned;
}

const Interpreter::Purity& Interpreter::purity(const clang::Stmt& statement) {
  const auto [entry, added] = purities_.try_emplace(&statement);
  Purity& result = entry->second;
  if (!added) {
    return result;
  }
  PurityVisitor visitor;
  visitor.TraverseStmt(const_cast<clang::Stmt*>(&statement));
  result.reusable = visitor.pure;
  for (const clang::DeclRefExpr* reference : visitor.references) {
    const auto* variable = clang::dyn_cast<clang::VarDecl>(reference->getDecl());
    if (variable == nullptr ||
        std::ranges::find(visitor.inside, variable) != visitor.inside.end()) {
      continue;
    }
    const clang::QualType type = variable->getType();
    const bool only_read = std::ranges::find(visitor.reads, reference) != visitor.reads.end();
    const bool memory = is_memory(type.getNonReferenceType()) || type->isFloatingType();
    if (variable->hasGlobalStorage() && builtin(*variable) == nullptr) {
      continue;
    }
    if (memory && !type->isReferenceType()) {
      continue;
    }
    result.reusable &= memory || only_read || builtin(*variable) != nullptr;
    if (std::ranges::find(result.inputs, variable) == result.inputs.end()) {
      result.inputs.push_back(variable);
    }
  }
  return result;
}

bool Interpreter::reuse(const clang::Stmt& statement) {
  constexpr std::size_t most_segments = 8;
  const Purity& pure = purity(statement);
  if (!pure.reusable) {
    return false;
  }
  Segment now{.inputs = {}, .mask = mask_, .id = next_segment_};
  for (const clang::VarDecl* input : pure.inputs) {
    const Variable* known = builtin(*input);
    const auto& variables = frames_.back().variables;
    const auto found = variables.find(input);
    if (known == nullptr && found == variables.end()) {
      return false;
    }
    const Variable& variable = known != nullptr ? *known : found->second;
    const auto* refers = std::get_if<Reference>(&variable.refers);
    if (refers != nullptr && refers->variable != nullptr) {
      return false;
    }
    now.inputs.emplace_back(input, refers != nullptr ? Value(refers->place) : variable.value);
  }
  auto& known = segments_[&statement];
  for (const Segment& earlier : known) {
    if (earlier.inputs == now.inputs && earlier.mask == now.mask) {
      return observer_->repeat(earlier.id);
    }
  }
  if (known.size() == most_segments) {
    return false;
  }
  ++next_segment_;
  recording_ = true;
  observer_->begin_segment(now.id);
  execute_plain(statement);
  observer_->end_segment(now.id);
  recording_ = false;
  known.push_back(std::move(now));
  return true;
}

} // namespace evo
