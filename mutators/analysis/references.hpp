// Where a declaration is used.
#pragma once

#include <optional>
#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/render.hpp"

namespace clang {
class ValueDecl;
} // namespace clang

namespace evo {

/// The name wherever the file uses a variable, parameter or member (not where it declares it), in
/// source order; nullopt when a macro does.
std::optional<std::vector<Span>> references(const Kernel& kernel,
                                            const clang::ValueDecl& declaration);

} // namespace evo
