// The values an index takes over the threads of a block.
#pragma once

#include <cstdint>
#include <optional>

#include "mutators/kernel.hpp"

namespace clang {
class Expr;
class FunctionDecl;
} // namespace clang

namespace evo {

/// Both ends inclusive.
struct Range {
  std::int64_t least = 0;
  std::int64_t greatest = 0;
};

/// Bounds of an integer expression in `function` over all threads of all its launches: of
/// constants, threadIdx and const variables, joined by + * / % and >>, and never negative. Without
/// a launch whose block size is constant, a block has as many threads as the target allows. nullopt
/// for anything else.
std::optional<Range> thread_range(const Kernel& kernel, const clang::FunctionDecl& function,
                                  const clang::Expr& expr);

} // namespace evo
