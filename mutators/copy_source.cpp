#include "mutators/copy_source.hpp"

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/hinted_access.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// Without what C++ wraps around a struct that is copied.
const clang::Expr* bare(const clang::Expr* expr) {
  const clang::Expr* inner = expr->IgnoreParenImpCasts();
  if (const auto* full = dyn_cast<clang::FullExpr>(inner)) {
    return bare(full->getSubExpr());
  }
  if (const auto* temporary = dyn_cast<clang::MaterializeTemporaryExpr>(inner)) {
    return bare(temporary->getSubExpr());
  }
  const auto* copy = dyn_cast<clang::CXXConstructExpr>(inner);
  return copy != nullptr && copy->getNumArgs() == 1 &&
                 copy->getConstructor()->isCopyOrMoveConstructor()
             ? bare(copy->getArg(0))
             : inner;
}

bool is_zero(const clang::Expr* expr) {
  const auto* literal = dyn_cast<clang::FloatingLiteral>(expr->IgnoreParenImpCasts());
  return literal != nullptr && literal->getValue().isPosZero();
}

bool is_global(const clang::Expr& place) {
  return memory_of(place).space == Space::Global;
}

/// The place that is read, whatever the caches are told.
const clang::Expr* without_hint(const clang::Expr* value) {
  const auto load = hinted_load(value);
  return load ? load->place : value;
}

std::optional<CopiedElement> copied_element(const clang::Expr* value) {
  value = value->IgnoreParenImpCasts();
  CopiedElement element{.read = without_hint(value)};
  if (const auto* choice = dyn_cast<clang::ConditionalOperator>(value)) {
    if (!is_zero(choice->getFalseExpr())) {
      return std::nullopt;
    }
    element = {choice->getCond(), without_hint(choice->getTrueExpr()->IgnoreParenImpCasts())};
  }
  const bool copies = clang::isa<clang::ArraySubscriptExpr>(element.read) &&
                      element.read->getType()->isSpecificBuiltinType(clang::BuiltinType::Float) &&
                      is_global(*element.read);
  return copies ? std::optional(element) : std::nullopt;
}

/// A float, or 32 bits of what is no float here.
bool is_element(clang::QualType type) {
  return type->isFloatingType() || type->isSpecificBuiltinType(clang::BuiltinType::UInt);
}

/// The pointer in *reinterpret_cast<const float4 *>(pointer), to global memory.
const clang::Expr* group_of(const clang::Expr* value) {
  const auto load = hinted_load(value);
  const auto* place = dyn_cast<clang::UnaryOperator>(value);
  const clang::Expr* vector = load ? load->place
                              : place != nullptr && place->getOpcode() == clang::UO_Deref
                                  ? place->getSubExpr()
                                  : nullptr;
  const auto* cast = vector == nullptr
                         ? nullptr
                         : dyn_cast<clang::ExplicitCastExpr>(vector->IgnoreParenImpCasts());
  const clang::Expr* pointer =
      cast == nullptr ? nullptr : cast->getSubExpr()->IgnoreParenImpCasts();
  return pointer != nullptr && pointer->getType()->isPointerType() &&
                 is_element(pointer->getType()->getPointeeType()) && is_global(*pointer)
             ? pointer
             : nullptr;
}

/// Of make_float4(...).
std::vector<CopiedElement> elements_of(const clang::Expr* value) {
  const auto* call = dyn_cast<clang::CallExpr>(value);
  const clang::FunctionDecl* callee = call == nullptr ? nullptr : call->getDirectCallee();
  std::vector<CopiedElement> elements;
  if (callee == nullptr ||
      (callee->getNameAsString() != "make_float4" && callee->getNameAsString() != "make_float2")) {
    return elements;
  }
  for (const clang::Expr* argument : call->arguments()) {
    const auto element = copied_element(argument);
    if (!element) {
      return {};
    }
    elements.push_back(*element);
  }
  return elements;
}

std::optional<CopySource> group_source(const clang::Expr* value) {
  value = bare(value);
  CopySource source{.elements = {}};
  if (const auto* choice = dyn_cast<clang::ConditionalOperator>(value)) {
    source.whole = choice->getCond();
    source.group = group_of(bare(choice->getTrueExpr()));
    source.elements = elements_of(bare(choice->getFalseExpr()));
    const bool copies = source.group != nullptr && !source.elements.empty();
    return copies ? std::optional(source) : std::nullopt;
  }
  source.group = group_of(value);
  source.elements = elements_of(value);
  const bool copies = source.group != nullptr || !source.elements.empty();
  return copies ? std::optional(source) : std::nullopt;
}

/// Of group.x, where `group` is a const variable.
std::optional<CopySource> component_source(const clang::MemberExpr& component) {
  const auto* name = dyn_cast<clang::DeclRefExpr>(component.getBase()->IgnoreParenImpCasts());
  const auto* field = dyn_cast<clang::FieldDecl>(component.getMemberDecl());
  const auto* group = name == nullptr ? nullptr : dyn_cast<clang::VarDecl>(name->getDecl());
  if (group == nullptr || field == nullptr || !group->hasLocalStorage() || !group->hasInit() ||
      !group->getType().isConstQualified()) {
    return std::nullopt;
  }
  const auto source = group_source(group->getInit());
  const unsigned index = field->getFieldIndex();
  return source && index < source->elements.size()
             ? std::optional(CopySource{.elements = {source->elements[index]}})
             : std::nullopt;
}

} // namespace

std::optional<CopySource> copy_source(const clang::Expr& value) {
  if (value.getType()->isRecordType()) {
    return group_source(&value);
  }
  if (const auto element = copied_element(&value)) {
    return CopySource{.elements = {*element}};
  }
  const auto* component = dyn_cast<clang::MemberExpr>(value.IgnoreParenImpCasts());
  return component == nullptr ? std::nullopt : component_source(*component);
}

} // namespace evo
