#include "mutators/analysis/first_iteration.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/launches.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

const clang::ParmVarDecl* parameter_of(const clang::Expr* expr) {
  const auto* reference = dyn_cast<clang::DeclRefExpr>(expr->IgnoreParenImpCasts());
  return reference == nullptr ? nullptr : dyn_cast<clang::ParmVarDecl>(reference->getDecl());
}

/// Which of the entry's integer parameters `size` is.
std::size_t size_index(const clang::FunctionDecl& entry, const clang::ParmVarDecl* size) {
  std::size_t index = 0;
  for (const clang::ParmVarDecl* parameter : entry.parameters()) {
    if (parameter == size) {
      break;
    }
    index += parameter->getType()->isIntegerType() ? 1 : 0;
  }
  return index;
}

/// Whether no block of `function` is launched when the entry's parameter `size` is zero and the
/// other sizes are not.
bool needs_size(const Kernel& kernel, const clang::FunctionDecl& function,
                const clang::FunctionDecl& entry, const clang::ParmVarDecl* size) {
  const auto dims = find_dims(kernel);
  const std::size_t index = size_index(entry, size);
  if (!dims || index >= dims->fixed.size() || may_change(*entry.getBody(), *size)) {
    return false;
  }
  std::vector<std::int64_t> values = dims->at(64);
  values[index] = 0;
  const auto launched = evaluate_launches(kernel, values);
  const auto* launches = std::get_if<std::vector<EvaluatedLaunch>>(&launched);
  return launches != nullptr && std::ranges::all_of(*launches, [&](const EvaluatedLaunch& launch) {
           return launch.launch.kernel != &function || launch.grid.count() == 0;
         });
}

} // namespace

bool always_has_first_iteration(const Kernel& kernel, const clang::FunctionDecl& function,
                                const CountedLoop& loop) {
  const auto start = constant_value(kernel, *loop.start);
  if (const auto limit = constant_value(kernel, *loop.limit)) {
    return start && *start < *limit;
  }
  const clang::ParmVarDecl* limit = parameter_of(loop.limit);
  if (!start || *start > 0 || limit == nullptr || limit->getDeclContext() != &function ||
      may_change(*function.getBody(), *limit)) {
    return false;
  }
  const clang::FunctionDecl* entry = find_entry(kernel);
  std::vector<Launch> launches = find_launches(kernel);
  std::erase_if(launches, [&](const Launch& launch) { return launch.kernel != &function; });
  return !launches.empty() && std::ranges::all_of(launches, [&](const Launch& launch) {
    const auto* size = parameter_of(launch.arguments[limit->getFunctionScopeIndex()]);
    return size != nullptr && size->getDeclContext() == entry && size->getType()->isIntegerType() &&
           needs_size(kernel, function, *entry, size);
  });
}

} // namespace evo
