// The one model of a kernel's stages that rewrites share.
#pragma once

#include <vector>

#include "mutators/analysis/accesses.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class CompoundStmt;
class ForStmt;
class FunctionDecl;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// What a statement of the reduction loop's body does:
///   Core     updates an accumulator (and whatever else)
///   Load     reads global memory into shared memory or registers
///   Store    writes shared memory from registers
///   Fragment reads shared memory into registers, outside the core
///   Barrier  is __syncthreads()
///   Other    definitions, counters, nothing
enum class Role { Core, Load, Store, Fragment, Barrier, Other };

struct StagePart {
  Role role = Role::Other;
  const clang::Stmt* statement = nullptr;
  Accesses accesses;
};

/// One assignment or definition that carries data between memory spaces: global to shared, global
/// to register, register to shared, shared to register. Constants come from registers; updates of
/// accumulators are not moves.
struct Move {
  Memory from;
  Memory to;
  const clang::Stmt* statement = nullptr;
};

/// A reduction loop of a kernel and what surrounds it. A kernel without shared tiles has one too:
/// its body is all core.
///
///     definitions
///     for (k0 ...)          // loop
///       load, barrier,      // body, in source order: statements in nested braces are one part
///       core, barrier
///     epilogue              // the later statements, in the same braces, that write global memory
struct Stages {
  const clang::FunctionDecl* kernel = nullptr;
  const clang::CompoundStmt* parent = nullptr; // the braces the loop stands in
  const clang::Stmt* statement = nullptr;      // the loop with its #pragma unroll, if it has one
  const clang::ForStmt* loop = nullptr;
  bool inside_loop = false; // of another loop, which runs it several times
  std::vector<StagePart> body;
  std::vector<Move> moves; // of the body
  std::vector<const clang::VarDecl*> accumulators;
  std::vector<Memory> tiles; // shared memory that the body writes, in order of first appearance
  std::vector<const clang::Stmt*> epilogue;
};

/// Every reduction loop of every kernel (not of templates) in source order: an outermost for loop,
/// standing in braces, that updates floating-point registers which outlive an iteration (its
/// accumulators). What a statement does is told by the memory that its accesses touch, never by
/// names or form; so rewritten kernels have stages too.
std::vector<Stages> find_stages(const Kernel& kernel);

} // namespace evo
