// Copies from global to shared memory by CUDA's pipeline primitives.
#pragma once

namespace clang {
class CallExpr;
class Stmt;
} // namespace clang

namespace evo {

/// The call if a statement is __pipeline_memcpy_async(to, from, size, zeros); else nullptr.
const clang::CallExpr* async_copy(const clang::Stmt* statement);

/// The call if a statement is __pipeline_wait_prior(groups); else nullptr.
const clang::CallExpr* wait_for_copies(const clang::Stmt* statement);

} // namespace evo
