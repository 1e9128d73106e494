// Where a declaration is used.
#pragma once

#include <optional>
#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/render.hpp"

namespace clang {
class FunctionDecl;
class ValueDecl;
} // namespace clang

namespace evo {

/// The name wherever the file uses a variable, parameter or member (not where it declares it), in
/// source order; nullopt when a macro does.
std::optional<std::vector<Span>> references(const Kernel& kernel,
                                            const clang::ValueDecl& declaration);

/// Whether the file declares a kernel once and names it once, apart from cudaFuncSetAttribute.
bool is_used_once(const Kernel& kernel, const clang::FunctionDecl& function);

} // namespace evo
