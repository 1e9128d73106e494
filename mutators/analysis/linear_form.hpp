// Integer expressions of a kernel as sums: of its sizes, of where the block begins, of the counters
// of loops, and of what the threads of a block add.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/evaluator.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class BinaryOperator;
class Expr;
class FunctionDecl;
class VarDecl;
} // namespace clang

namespace evo {

/// Both ends inclusive; each value is a multiple of `multiple` (0: the value is 0).
struct Bounds {
  std::int64_t least = 0;
  std::int64_t greatest = 0;
  std::int64_t multiple = 0;

  bool is_constant() const { return least == greatest; }
};

struct LinearTerm {
  /// Size: an integer parameter. Origin: the same for all threads of a block, and other in other
  /// blocks. Counter: of a loop whose limit depends on a size.
  enum class Kind { Size, Origin, Counter };
  Kind kind = Kind::Size;
  const clang::Expr* expr = nullptr;
  std::int64_t coefficient = 1;
};

/// The terms, each of another expression, and the rest: what depends on the thread alone.
struct LinearForm {
  std::vector<LinearTerm> terms;
  Bounds rest;

  /// The only term of a kind; nullptr if there is none or more than one.
  const LinearTerm* only(LinearTerm::Kind kind) const;
  std::size_t count(LinearTerm::Kind kind) const;
};

/// Reads expressions in `function` for all its threads, blocks and sizes at once. Local variables
/// are followed to their definitions where nothing changes them later; an origin that is one
/// defined before `offset` is a term as it is.
class LinearView {
public:
  LinearView(const Kernel& kernel, const clang::FunctionDecl& function, unsigned offset);

  /// nullopt for what is no such sum.
  std::optional<LinearForm> of(const clang::Expr& integer);
  std::optional<LinearForm> difference(const clang::Expr& left, const clang::Expr& right);

  /// A divisor of all values of an expression, when the sizes are multiples of `of_sizes`.
  std::int64_t multiple(const clang::Expr& integer, std::int64_t of_sizes);

  /// Whether all threads of a block agree on an expression's value.
  bool is_uniform(const clang::Expr& integer);

  /// From now on a variable is less than `limit`; nullopt: no longer.
  void limit(const clang::VarDecl& variable, std::optional<std::int64_t> limit);

private:
  /// What decides a value.
  struct Sources {
    bool thread = false;
    bool block = false;
    bool size = false;
    bool counter = false; // of a loop whose limit depends on a size
    bool other = false;   // memory, calls, variables that change
  };

  Sources sources(const clang::Stmt& code);
  Sources sources(const clang::VarDecl& variable);
  const clang::Expr* definition(const clang::VarDecl& variable) const;
  std::optional<LinearForm> of_variable(const clang::Expr& use, const clang::VarDecl& variable);
  std::optional<LinearForm> combined(const clang::BinaryOperator& operation);
  std::optional<LinearForm> sum(std::optional<LinearForm> left, std::optional<LinearForm> right,
                                std::int64_t sign) const;
  std::optional<Bounds> bounds(const clang::Expr& integer);
  std::optional<Bounds> bounds(const clang::VarDecl& variable);
  std::optional<Bounds> over_threads(const clang::Expr& integer);

  const Kernel& kernel_;
  const clang::FunctionDecl& function_;
  unsigned offset_;
  Evaluator evaluator_;
  std::optional<Block> block_; // one of the function's; nullopt: its launches differ
  std::map<const clang::VarDecl*, std::int64_t> limits_;
};

} // namespace evo
