// Epilogues in which every thread writes its accumulators where they belong in the result.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/stage_model.hpp"
#include "mutators/thread_block.hpp"

namespace clang {
class ArraySubscriptExpr;
class DeclStmt;
class Expr;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// result[row * width + column + offset] = value, of one element or, through a cast of its address,
/// of `width` elements in a row; with a hint for the caches or without.
struct ResultStore {
  const clang::Stmt* statement = nullptr;
  const clang::ArraySubscriptExpr* element = nullptr;
  const clang::Expr* value = nullptr;
  std::int64_t width = 1;
  std::int64_t offset = 0;
};

/// origin + rest: where the block's tile begins, and where in it the thread's element lies.
struct TileCoordinate {
  const clang::VarDecl* variable = nullptr;
  std::vector<const clang::Expr*> origin;      // summands that all threads agree on
  std::vector<const clang::Expr*> rest;        // the others
  std::int64_t extent = 0;                     // of the tile
  const clang::Expr* written_extent = nullptr; // what the origin is a multiple of
};

/// for (...) for (...) { const int row = ...; const int column = ...; ...; action }, where the
/// action stores one group of elements, under conditions and after a computation if it must. The
/// threads of a block store each element of its tile once.
struct DirectEpilogue {
  const clang::Stmt* nest = nullptr; // with its pragmas
  std::vector<CountedLoop> loops;    // outermost first; trips are constant
  std::vector<const clang::DeclStmt*> definitions;
  const clang::Stmt* action = nullptr;
  std::vector<const clang::VarDecl*> accumulators; // of the reduction
  std::vector<ResultStore> stores;                 // in source order
  TileCoordinate row;
  TileCoordinate column;
};

/// The epilogue of a reduction by all threads of a block; nullopt where it is anything else.
std::optional<DirectEpilogue> direct_epilogue(const Kernel& kernel, const Stages& stages,
                                              const ThreadBlock& block);

} // namespace evo
