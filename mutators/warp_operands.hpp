// How the matrices that warps multiply come from global memory into their registers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/element_stores.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/stage_model.hpp"
#include "mutators/kernel.hpp"
#include "mutators/tensor_type.hpp"
#include "mutators/thread_block.hpp"

namespace clang {
class ArraySubscriptExpr;
class CallExpr;
class DeclaratorDecl;
class Expr;
class ParmVarDecl;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// A matrix, a tile of it in shared memory, and a lane's registers of the tile, in which each float
/// is several parts. `across` is the coordinate that is not k.
struct WarpOperand {
  // registers[..][part][slot] = ..., in a loop over slots
  const clang::ArraySubscriptExpr* part_registers = nullptr; // registers[..][part]
  const clang::VarDecl* part = nullptr;
  DeviceLoop slots;
  const clang::VarDecl* accumulator = nullptr; // counts, by 2, the accumulators across

  const clang::ArraySubscriptExpr* element = nullptr; // of the tile, as it is read
  const clang::DeclaratorDecl* tile = nullptr;        // float[..][..]
  const clang::Expr* tile_across = nullptr;           // its extent, without a pad
  const clang::VarDecl* place = nullptr;              // says where across the tile a lane reads

  const clang::Stmt* load = nullptr; // fills the tile, and nothing else
  const clang::ParmVarDecl* matrix = nullptr;
  bool k_along_rows = false;                    // of the matrix: neighbours in k are neighbours
  std::vector<const clang::Expr*> block_across; // where the tile begins in the matrix, summands
  const clang::ParmVarDecl* pitch = nullptr;    // of the matrix's rows
  const clang::ParmVarDecl* across = nullptr;   // how large the matrix is
};

/// One reduction loop over tiles of both operands.
struct WarpOperands {
  const clang::FunctionDecl* function = nullptr;
  const Stages* stages = nullptr;
  CountedLoop tiles; // k0, from 0 to `depth` by the tile's
  const clang::ParmVarDecl* depth = nullptr;
  DeviceLoop k; // inside a tile
  const TensorType* type = nullptr;
  const clang::VarDecl* parts = nullptr; // the constant that counts them
  const clang::VarDecl* lane = nullptr;
  WarpOperand left;
  WarpOperand right;
};

/// nullopt unless the kernel multiplies by one call of mma.sync alone, whose operands it splits in
/// registers, from tiles that stand in shared memory once.
std::optional<WarpOperands> warp_operands(const Kernel& kernel, const ThreadBlock& block,
                                          const std::vector<Stages>& stages);

} // namespace evo
