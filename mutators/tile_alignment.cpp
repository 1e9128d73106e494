#include "mutators/tile_alignment.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/RecordLayout.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// The array that subscripts begin with: a variable or a member; nullptr for a pointer.
const clang::Expr* array_of(const clang::ArraySubscriptExpr& place) {
  const auto* decay = dyn_cast<clang::ImplicitCastExpr>(place.getBase()->IgnoreParens());
  if (decay == nullptr || decay->getCastKind() != clang::CK_ArrayToPointerDecay) {
    return nullptr;
  }
  const clang::Expr* array = decay->getSubExpr()->IgnoreParens();
  const auto* outer = dyn_cast<clang::ArraySubscriptExpr>(array);
  return outer == nullptr ? array : array_of(*outer);
}

/// The shared memory whose begin a struct lies at: the variable itself, or what a reference or
/// pointer to it was cast from.
const clang::VarDecl* memory_at(const clang::VarDecl* variable) {
  if (variable == nullptr || variable->hasAttr<clang::CUDASharedAttr>() || !variable->hasInit()) {
    return variable;
  }
  const clang::Expr* view = variable->getInit()->IgnoreParenCasts();
  if (const auto* unary = dyn_cast<clang::UnaryOperator>(view);
      unary != nullptr && unary->getOpcode() == clang::UO_Deref) {
    view = unary->getSubExpr();
  }
  return variable_of(view);
}

/// nullopt in a macro.
std::optional<unsigned> begin_of(const Kernel& kernel, const clang::Decl& declaration) {
  const clang::SourceManager& sources = kernel.ast().getSourceManager();
  clang::SourceLocation first = sources.getExpansionLoc(declaration.getBeginLoc());
  for (const clang::Attr* attribute : declaration.attrs()) { // __shared__ is a macro
    first = std::min(first, sources.getExpansionLoc(attribute->getLocation()));
  }
  return sources.isInMainFile(first) ? std::optional(sources.getFileOffset(first)) : std::nullopt;
}

/// Whether the member lies where it would with the alignment, and so does what is behind it.
bool keeps_layout(const Kernel& kernel, const clang::FieldDecl& member, std::int64_t bytes) {
  const auto& layout = kernel.ast().getASTRecordLayout(member.getParent());
  const auto offset = kernel.ast().toCharUnitsFromBits(
      static_cast<std::int64_t>(layout.getFieldOffset(member.getFieldIndex())));
  return !member.getParent()->isUnion() && offset.getQuantity() % bytes == 0 &&
         layout.getSize().getQuantity() % bytes == 0;
}

} // namespace

std::optional<std::vector<Edit>>
align_tile(const Kernel& kernel, const clang::ArraySubscriptExpr& place, std::int64_t bytes) {
  const clang::Expr* array = array_of(place);
  const auto* member = array == nullptr ? nullptr : dyn_cast<clang::MemberExpr>(array);
  const auto* field =
      member == nullptr ? nullptr : dyn_cast<clang::FieldDecl>(member->getMemberDecl());
  const clang::VarDecl* named =
      array == nullptr ? nullptr : variable_of(field == nullptr ? array : member->getBase());
  const clang::VarDecl* memory = memory_at(named);
  if (memory == nullptr || !memory->hasAttr<clang::CUDASharedAttr>() ||
      (field == nullptr && memory != named) ||
      (field != nullptr && !keeps_layout(kernel, *field, bytes))) {
    return std::nullopt;
  }
  std::vector<Edit> edits;
  const auto align = [&](const clang::Decl& declaration) {
    if (declaration.getMaxAlignment() / 8 >= bytes) {
      return true;
    }
    const auto begin = begin_of(kernel, declaration);
    edits.push_back({begin.value_or(0), 0, "alignas(" + std::to_string(bytes) + ") "});
    return begin.has_value();
  };
  const bool by_type = field != nullptr && memory == named; // the struct is as strict as its member
  const bool done = (field == nullptr || align(*field)) && (by_type || align(*memory));
  return done ? std::optional(edits) : std::nullopt;
}

} // namespace evo
