// <entry>_workspace, which tells how many bytes the entry needs.
#pragma once

namespace clang {
class Expr;
class FunctionDecl;
class ParmVarDecl;
} // namespace clang

namespace evo {

/// The bytes that the function returns; nullptr where it does anything else.
const clang::Expr* bytes_returned(const clang::FunctionDecl& workspace);

/// What the function calls an integer parameter of the entry, as it takes them in their order;
/// nullptr where it has none for it.
const clang::ParmVarDecl* parameter_of_workspace(const clang::FunctionDecl& entry,
                                                 const clang::FunctionDecl& workspace,
                                                 const clang::ParmVarDecl& parameter);

} // namespace evo
