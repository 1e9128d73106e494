// <entry>_workspace, which tells how many bytes the entry needs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

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

/// How far the first byte behind a region that is written is from its beginning, when the entry's
/// integer parameters are `dims`.
struct RegionExtent {
  std::vector<std::int64_t> dims;
  std::int64_t bytes = 0;
};

/// Leaves a region out of the workspace: the first product in what <entry>_workspace returns, or in
/// what a function returns that it calls, that is as many bytes as the region, or, where rows are
/// padded, more at some of the sizes. nullopt without one.
std::optional<Edit> without_region(const Kernel& kernel, const clang::FunctionDecl& workspace,
                                   const std::vector<RegionExtent>& region);

} // namespace evo
