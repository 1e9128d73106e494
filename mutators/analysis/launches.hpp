// The launches of a kernel file: what its extern "C" entry starts, in order and with what.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "mutators/analysis/evaluator.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class CUDAKernelCallExpr;
class CallExpr;
class Expr;
class FunctionDecl;
} // namespace clang

namespace evo {

/// One kernel<<<grid, block, shared_bytes, stream>>>(arguments) as it is written.
struct Launch {
  const clang::CUDAKernelCallExpr* call = nullptr;
  const clang::FunctionDecl* kernel = nullptr; // the definition
  const clang::Expr* grid = nullptr;
  const clang::Expr* block = nullptr;
  const clang::Expr* shared_bytes = nullptr; // nullptr where the launch leaves it out
  const clang::Expr* stream = nullptr;       // likewise
  std::vector<const clang::Expr*> arguments;
};

/// The extern "C" function with a body that launches kernels: the entry. nullptr when there is
/// none or more than one.
const clang::FunctionDecl* find_entry(const Kernel& kernel);

/// extern "C" size_t <entry>_workspace(dims), which tells the bytes that the entry needs; nullptr
/// without one.
const clang::FunctionDecl* workspace_function(const Kernel& kernel,
                                              const clang::FunctionDecl& entry);

/// Buffer::id of what an entry is given as `void *`: memory that nobody else looks at. Empty
/// without an entry.
std::set<int> workspace_buffers(const Kernel& kernel);

/// Every launch in the entry in source order, also those under a condition or in a loop; empty
/// without an entry. A launch whose kernel has no body in this file makes the list empty too: what
/// is not seen whole is not seen.
std::vector<Launch> find_launches(const Kernel& kernel);

/// The entry's calls of cudaFuncSetAttribute for a kernel.
std::vector<const clang::CallExpr*> attribute_calls(const Kernel& kernel,
                                                    const clang::FunctionDecl& function);

/// A launch as one call of the entry makes it.
struct EvaluatedLaunch {
  Launch launch;
  Extent3 grid;
  Extent3 block;
  std::int64_t shared_bytes = 0;   // dynamic
  std::int64_t shared_limit = 0;   // what cudaFuncSetAttribute allowed before; 48 KiB without it
  std::vector<Argument> arguments; // a Buffer's id is the index of the entry's pointer parameter

  /// One block of it.
  Block block_at(Extent3 index) const;
};

/// What the entry launches, in order, when its integer parameters are `dims` (in their order) and
/// the constants have the assigned values. Calls of the runtime count as successful. Empty where
/// the entry returns before it launches anything.
std::variant<std::vector<EvaluatedLaunch>, Failure>
evaluate_launches(const Kernel& kernel, const std::vector<std::int64_t>& dims,
                  const Assignment& values = {});

/// Values of the entry's integer parameters under which it launches.
struct EntryDims {
  std::vector<std::optional<std::int64_t>>
      fixed; // one per parameter; nullopt: the size that varies

  std::vector<std::int64_t> at(std::int64_t size) const;
};

/// What the entry launches at a size; empty where that cannot be evaluated.
std::vector<EvaluatedLaunch> launches_at(const Kernel& kernel, const EntryDims& dims,
                                         std::int64_t size);

/// Finds by evaluation which parameters may vary: as many as possible, the others have the value
/// of one of the file's constants (a rank on which the entry insists). nullopt when nothing is
/// launched either way.
std::optional<EntryDims> find_dims(const Kernel& kernel);

} // namespace evo
