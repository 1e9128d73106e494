// Where a file declares its constants, and where a rewrite may add one.
#pragma once

#include <optional>
#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/render.hpp"

namespace clang {
class Decl;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// The constants at namespace scope that an expression mentions, in source order.
std::vector<const clang::VarDecl*> mentioned_constants(const clang::Stmt& expression);

/// The lines of a declaration that has them for itself.
std::optional<Span> lines_of(const Kernel& kernel, const clang::VarDecl& constant);

/// Behind the last of `constants`, so that the order of rewrites does not matter; before `user`
/// where that is not possible.
std::optional<unsigned> offset_behind(const Kernel& kernel,
                                      const std::vector<const clang::VarDecl*>& constants,
                                      const clang::Decl& user);

} // namespace evo
