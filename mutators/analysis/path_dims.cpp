#include "mutators/analysis/path_dims.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/meaning.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

std::vector<const clang::VarDecl*> flags_of(const clang::FunctionDecl& kernel) {
  std::vector<const clang::VarDecl*> flags;
  for (const clang::Stmt* statement : kernel.getBody()->children()) {
    const auto* definition = clang::dyn_cast_or_null<clang::DeclStmt>(statement);
    const auto* variable = definition != nullptr && definition->isSingleDecl()
                               ? dyn_cast<clang::VarDecl>(definition->getSingleDecl())
                               : nullptr;
    if (variable != nullptr && variable->hasInit() && variable->getType().isConstQualified() &&
        variable->getType()->isBooleanType()) {
      flags.push_back(variable);
    }
  }
  return flags;
}

std::vector<const clang::VarDecl*> flags_of_all_kernels(const Kernel& kernel) {
  std::set<const clang::FunctionDecl*> kernels;
  for (const Launch& launch : find_launches(kernel)) {
    kernels.insert(launch.kernel);
  }
  std::vector<const clang::VarDecl*> flags;
  for (const clang::FunctionDecl* function : kernels) {
    std::ranges::copy(flags_of(*function), std::back_inserter(flags));
  }
  return flags;
}

/// Whether a flag holds in a block of the first column of a launch's grid.
bool holds(const Kernel& kernel, const std::vector<EvaluatedLaunch>& launches,
           const clang::VarDecl& flag) {
  constexpr int enough = 4;
  Evaluator evaluator(kernel);
  for (const EvaluatedLaunch& launch : launches) {
    const bool asked = launch.launch.kernel == flag.getDeclContext();
    for (int row = 0; asked && row < std::min(launch.grid.y, enough); ++row) {
      const auto value = evaluator.value(*flag.getInit(), launch.block_at({0, row, 0}));
      const auto* known = std::get_if<Ints>(&value);
      if (known != nullptr && (*known)[0] != 0) {
        return true;
      }
    }
  }
  return false;
}

/// The smallest size at which each flag holds; nullopt where one never does.
std::optional<std::set<std::int64_t>> smallest_sizes(const Kernel& kernel, const EntryDims& dims,
                                                     std::vector<const clang::VarDecl*> flags) {
  constexpr std::int64_t largest_tile = 512;
  std::set<std::int64_t> sizes;
  for (std::int64_t size = 1; size <= largest_tile && !flags.empty(); ++size) {
    const auto launches = launches_at(kernel, dims, size);
    const auto found = std::erase_if(
        flags, [&](const clang::VarDecl* flag) { return holds(kernel, launches, *flag); });
    if (found > 0) {
      sizes.insert(size);
    }
  }
  return flags.empty() ? std::optional(sizes) : std::nullopt;
}

} // namespace

std::vector<std::vector<std::int64_t>> dims_of_all_paths(const Kernel& kernel) {
  constexpr std::int64_t cheap = 64; // tiles up to this size are run as several blocks
  const auto dims = find_dims(kernel);
  const auto found =
      dims ? smallest_sizes(kernel, *dims, flags_of_all_kernels(kernel)) : std::nullopt;
  if (!found) {
    return {};
  }
  const std::set<std::int64_t>& sizes = *found;
  auto result = sizes.empty() || *sizes.rbegin() <= cheap ? telling_dims(kernel)
                                                          : telling_dims_of_a_block(kernel);
  for (const std::int64_t size : sizes) {
    result.push_back(dims->at(size));
  }
  return result;
}

} // namespace evo
