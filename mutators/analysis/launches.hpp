// The launches of a kernel file: what its extern "C" entry starts, in order and with what.
#pragma once

#include <vector>

#include "mutators/kernel.hpp"

namespace clang {
class CUDAKernelCallExpr;
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

/// Every launch in the entry in source order, also those under a condition or in a loop; empty
/// without an entry. A launch whose kernel has no body in this file makes the list empty too: what
/// is not seen whole is not seen.
std::vector<Launch> find_launches(const Kernel& kernel);

} // namespace evo
