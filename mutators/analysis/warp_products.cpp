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
  std::size_t depth = 0; // of the index that numbers the part
  const clang::Expr* registers = call.getArg(1)->IgnoreParenImpCasts();
  while (const auto* part = clang::dyn_cast<clang::ArraySubscriptExpr>(registers)) {
    registers = part->getBase()->IgnoreParenImpCasts();
    ++depth;
  }
  const clang::VarDecl* array = variable_of(registers);
  if (array == nullptr || depth == 0) {
    return nullptr;
  }
  const std::vector<const clang::Expr*> extents = written_extents(*array);
  const clang::Expr* extent = depth <= extents.size() ? extents[depth - 1] : nullptr;
  return extent == nullptr ? nullptr : variable_of(extent);
}

} // namespace evo
