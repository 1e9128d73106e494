// Loads and stores that tell the caches what to expect, by CUDA's functions.
#pragma once

#include <optional>

namespace clang {
class CallExpr;
class Expr;
class Stmt;
} // namespace clang

namespace evo {

/// __stcs(&place, value), or another function of its kind.
struct HintedStore {
  const clang::CallExpr* call = nullptr;
  const clang::Expr* place = nullptr; // the pointer itself where it is no &place
  const clang::Expr* value = nullptr;
};

/// nullopt for any other statement.
std::optional<HintedStore> hinted_store(const clang::Stmt* statement);

/// __ldg(&place), or another function of its kind.
struct HintedLoad {
  const clang::CallExpr* call = nullptr;
  const clang::Expr* place = nullptr; // likewise
};

/// nullopt for any other expression; parentheses do not count.
std::optional<HintedLoad> hinted_load(const clang::Expr* expr);

} // namespace evo
