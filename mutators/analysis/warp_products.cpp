#include "mutators/analysis/warp_products.hpp"

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/TypeLoc.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/ptx_instruction.hpp"

namespace evo {

bool multiplies_matrices(const clang::CallExpr& call) {
  const clang::FunctionDecl* callee = call.getDirectCallee();
  const clang::FunctionDecl* helper = callee == nullptr ? nullptr : callee->getDefinition();
  const clang::GCCAsmStmt* assembly = helper == nullptr ? nullptr : assembly_in(*helper);
  const PtxInstruction* instruction = assembly == nullptr ? nullptr : ptx_instruction(*assembly);
  return instruction != nullptr && instruction->kind == PtxInstruction::Kind::MultiplyMatrices;
}

const clang::VarDecl* count_of_parts(const clang::CallExpr& call) {
  if (!multiplies_matrices(call) || call.getNumArgs() != 3) {
    return nullptr;
  }
  const auto* registers =
      clang::dyn_cast<clang::ArraySubscriptExpr>(call.getArg(1)->IgnoreParenImpCasts());
  const clang::VarDecl* array = registers == nullptr ? nullptr : variable_of(registers->getBase());
  if (array == nullptr) {
    return nullptr;
  }
  const auto extent = array->getTypeSourceInfo()->getTypeLoc().getAs<clang::ArrayTypeLoc>();
  return extent.isNull() || extent.getSizeExpr() == nullptr ? nullptr
                                                            : variable_of(extent.getSizeExpr());
}

} // namespace evo
