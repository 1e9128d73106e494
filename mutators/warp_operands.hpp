// How the matrices that warps multiply come from global memory into their registers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mutators/analysis/element_stores.hpp"
#include "mutators/analysis/loops.hpp"
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

/// registers[..][part][slot] = ..., in a loop over slots: a lane's registers of a tile, in which
/// each float is several parts.
struct WarpRead {
  const clang::VarDecl* registers = nullptr;
  const clang::ArraySubscriptExpr* part_registers = nullptr; // registers[..][part]
  const clang::VarDecl* part = nullptr;
  DeviceLoop slots;
  DeviceLoop accumulators;                            // by 2, those across; around the slots
  const clang::ArraySubscriptExpr* element = nullptr; // of the tile
  const clang::Expr* stage = nullptr;                 // which tile, of several; else nullptr
};

/// One call of mma.sync and what it reads, for each step along k in a tile.
struct WarpMultiply {
  DeviceLoop k;
  std::optional<DeviceLoop> tiles; // the innermost loop around it
  WarpRead left;
  WarpRead right;
};

/// A statement that fills a tile from the matrix, or one of two that do by way of registers.
struct TileCopy {
  enum class Way { Direct, Async, ToRegisters, FromRegisters };

  const clang::Stmt* statement = nullptr; // maybe an AttributedStmt
  Way way = Way::Direct;
  const clang::Expr* stage = nullptr;        // which tile, of several; else nullptr
  const clang::VarDecl* registers = nullptr; // an array
  std::vector<const clang::Expr*> k;         // where the tile begins in the matrix, summands
  std::vector<const clang::Expr*> across;
};

/// A matrix and its tiles in shared memory. `across` is the coordinate that is not k.
struct WarpOperand {
  const clang::DeclaratorDecl* tile = nullptr; // float[..][..], or several of them
  const clang::Expr* stages = nullptr;         // how many; nullptr for one
  const clang::Expr* tile_across = nullptr;    // its extents, without a pad
  const clang::Expr* tile_k = nullptr;
  const clang::VarDecl* place = nullptr; // says where across the tile a lane reads

  std::vector<TileCopy> copies;
  const clang::ParmVarDecl* matrix = nullptr;
  bool k_along_rows = false;                  // of the matrix: neighbours in k are neighbours
  const clang::ParmVarDecl* pitch = nullptr;  // of the matrix's rows
  const clang::ParmVarDecl* across = nullptr; // how large the matrix is
};

/// All that a kernel multiplies: a sum over tiles of both operands, maybe on several paths.
struct WarpOperands {
  const clang::FunctionDecl* function = nullptr;
  const clang::Stmt* statement = nullptr;    // the first one with any of it, where places are known
  const clang::ParmVarDecl* depth = nullptr; // how long the sum is
  const TensorType* type = nullptr;
  const clang::VarDecl* parts = nullptr; // the constant that counts them
  const clang::VarDecl* lane = nullptr;
  std::vector<WarpMultiply> products;
  WarpOperand left;
  WarpOperand right;
};

/// nullopt unless the kernel multiplies by calls of one mma.sync, whose operands it splits in
/// registers, from tiles that statements of their own fill, each from a matrix that it compares
/// its coordinates with the sizes of.
std::optional<WarpOperands> warp_operands(const Kernel& kernel, const ThreadBlock& block);

} // namespace evo
