// What a piece of a kernel reads and writes, and in which memory.
#pragma once

#include <optional>
#include <vector>

namespace clang {
class CallExpr;
class Expr;
class FieldDecl;
class FunctionDecl;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// From near to far. Register: a thread's own variables and local arrays, and constants. Global:
/// memory behind a kernel's pointer parameters, and device variables. Unknown: a pointer whose
/// origin is not seen.
enum class Space { Register, Shared, Global, Unknown };

/// The owner of some memory.
struct Memory {
  Space space = Space::Unknown;
  const clang::VarDecl* variable = nullptr; // local, shared or device variable, kernel parameter
  const clang::FieldDecl* member = nullptr; // of a struct in `variable`; the outermost one

  bool operator==(const Memory&) const = default;
};

struct MemoryAccess {
  Memory memory;
  bool reads = false;
  bool writes = false; // both for +=, ++ and a pointer handed to a function that may write
  /// The lvalue, or the pointer handed over; nullptr for the variable that a definition writes.
  const clang::Expr* place = nullptr;
  const clang::Stmt* statement = nullptr; // of a write: the assignment, call or definition
  /// Of a write by = or a definition: the farthest memory that its value is read from, Register
  /// for a constant.
  std::optional<Memory> source;
};

struct Accesses {
  std::vector<MemoryAccess> list;               // a write follows the reads of its value
  std::vector<const clang::CallExpr*> barriers; // __syncthreads()
  /// The first thing whose effects are not known (assembly that is no instruction of
  /// ptx_instruction.hpp, a call of a function that
  /// this file only declares, a lambda); nullptr if the list is complete.
  const clang::Stmt* opaque = nullptr;
};

/// All accesses in `statement`, with those of the functions it calls except to their own variables.
/// References and pointers are followed to what they were initialised with, through arguments too,
/// and also where a struct is laid over `extern __shared__` memory by reinterpret_cast. A function
/// declared by CUDA's header touches what its pointer arguments point to and nothing else.
Accesses accesses_of(const clang::Stmt& statement);

/// The owner of the memory that an lvalue or a pointer refers to.
Memory memory_of(const clang::Expr& expr);

} // namespace evo
