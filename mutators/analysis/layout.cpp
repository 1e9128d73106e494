#include "mutators/analysis/layout.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/TypeLoc.h>

#include "mutators/analysis/evaluator.hpp"

namespace evo {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

[[noreturn]] void refuse_layout(std::string reason) {
  throw Failure{Failure::Kind::Unknown, std::move(reason)};
}

LayoutPtr array_of(LayoutPtr element, std::int64_t count) {
  if (count == 0 || count < -1) {
    throw Failure{Failure::Kind::Fault, "an array has " + std::to_string(count) + " elements"};
  }
  return std::make_shared<Layout>(Layout{.kind = Layout::Kind::Array,
                                         .bytes = std::max<std::int64_t>(count, 0) * element->bytes,
                                         .align = element->align,
                                         .count = count,
                                         .element = element,
                                         .fields = {}});
}

} // namespace

LayoutBuilder::LayoutBuilder(const clang::ASTContext& ast, bool hypothetical,
                             std::function<std::int64_t(const clang::Expr&)> evaluate)
    : ast_(ast), hypothetical_(hypothetical), evaluate_(std::move(evaluate)) {}

LayoutPtr LayoutBuilder::of(const clang::ValueDecl& declaration) {
  const auto* declarator = clang::dyn_cast<clang::DeclaratorDecl>(&declaration);
  if (declarator != nullptr && declarator->getTypeSourceInfo() != nullptr) {
    return of(declarator->getTypeSourceInfo()->getTypeLoc());
  }
  return of(declaration.getType());
}

LayoutPtr LayoutBuilder::of(clang::TypeLoc written) {
  written = written.getUnqualifiedLoc();
  if (const auto paren = written.getAs<clang::ParenTypeLoc>()) {
    return of(paren.getInnerLoc());
  }
  if (const auto elaborated = written.getAs<clang::ElaboratedTypeLoc>()) {
    return of(elaborated.getNamedTypeLoc());
  }
  if (const auto reference = written.getAs<clang::ReferenceTypeLoc>()) {
    return of(reference.getPointeeLoc());
  }
  if (const auto alias = written.getAs<clang::TypedefTypeLoc>()) {
    return of(alias.getTypedefNameDecl()->getTypeSourceInfo()->getTypeLoc());
  }
  if (const auto array = written.getAs<clang::ArrayTypeLoc>()) {
    const clang::Expr* extent = array.getSizeExpr();
    return array_of(of(array.getElementLoc()), extent != nullptr ? evaluate_(*extent) : -1);
  }
  return of(written.getType());
}

LayoutPtr LayoutBuilder::of(clang::QualType type) {
  type = type.getNonReferenceType().getCanonicalType();
  if (const auto* declaration = type->getAsRecordDecl()) {
    return record(*declaration);
  }
  if (const auto* array = ast_.getAsConstantArrayType(type)) {
    if (hypothetical_) {
      refuse_layout("the extent of " + type.getAsString() + " is not written where it is used");
    }
    return array_of(of(array->getElementType()), array->getSize().getSExtValue());
  }
  if (type->isIncompleteType() || type->isDependentType() || type->isArrayType()) {
    refuse_layout("the type " + type.getAsString() + " has no size here");
  }
  return std::make_shared<Layout>(Layout{.kind = Layout::Kind::Scalar,
                                         .bytes = ast_.getTypeSizeInChars(type).getQuantity(),
                                         .align = ast_.getTypeAlignInChars(type).getQuantity(),
                                         .element = nullptr,
                                         .fields = {}});
}

LayoutPtr LayoutBuilder::record(const clang::RecordDecl& declaration) {
  const clang::RecordDecl* definition = declaration.getDefinition();
  if (definition == nullptr || definition->isUnion()) {
    refuse_layout("the layout of " + declaration.getNameAsString() + " is not followed");
  }
  if (const auto found = records_.find(definition); found != records_.end()) {
    return found->second;
  }
  const auto* cxx = clang::dyn_cast<clang::CXXRecordDecl>(definition);
  const bool specialised = clang::isa<clang::ClassTemplateSpecializationDecl>(definition);
  if ((cxx != nullptr && (cxx->getNumBases() != 0 || cxx->isPolymorphic())) ||
      (specialised && hypothetical_)) {
    refuse_layout("the layout of " + declaration.getNameAsString() + " is not followed");
  }
  Layout layout{.kind = Layout::Kind::Record, .element = nullptr, .fields = {}};
  layout.align = std::max<std::int64_t>(1, definition->getMaxAlignment() / 8);
  for (const clang::FieldDecl* field : definition->fields()) {
    if (field->isBitField()) {
      refuse_layout("the layout of " + declaration.getNameAsString() + " is not followed");
    }
    const LayoutPtr member = of(*field);
    const std::int64_t align = std::max<std::int64_t>(member->align, field->getMaxAlignment() / 8);
    const std::int64_t offset = round_up(layout.bytes, align);
    layout.fields[field] = {offset, member};
    layout.bytes = offset + member->bytes;
    layout.align = std::max(layout.align, align);
  }
  layout.bytes = round_up(std::max<std::int64_t>(layout.bytes, 1), layout.align);
  return records_[definition] = std::make_shared<Layout>(std::move(layout));
}

} // namespace evo
