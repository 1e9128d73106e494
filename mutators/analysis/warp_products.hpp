// Calls of leaf helpers by which a warp multiplies matrices.
#pragma once

namespace clang {
class CallExpr;
class VarDecl;
} // namespace clang

namespace evo {

/// Whether a call is of a function that wraps mma.sync.
bool multiplies_matrices(const clang::CallExpr& call);

/// The constant that says of how many numbers of a short type a float is the sum, as an array with
/// the parts of the left factor has it for an extent; nullptr where the call is none of the above,
/// or its registers lie elsewhere.
const clang::VarDecl* count_of_parts(const clang::CallExpr& call);

} // namespace evo
