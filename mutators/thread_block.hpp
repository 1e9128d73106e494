// The threads of a kernel's blocks, and the proof that it does not matter which of them computes
// what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mutators/analysis/evaluator.hpp"
#include "mutators/analysis/meaning.hpp"
#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace clang {
class Expr;
class FunctionDecl;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// A kernel whose launches all have the same one-dimensional block.
struct ThreadBlock {
  const clang::FunctionDecl* function = nullptr;
  std::int64_t threads = 0;
  std::string written;                   // their number: a constant's name, or the digits
  const clang::VarDecl* named = nullptr; // that constant
  /// Const integers defined outside branches and loops, or right in an outermost loop, which may
  /// give a block several tiles.
  std::vector<const clang::VarDecl*> locals;
};

/// The const integers that a function defines outside loops and branches, in source order.
std::vector<const clang::VarDecl*> const_integers(const clang::FunctionDecl& function);

/// In source order of the launches.
std::vector<ThreadBlock> thread_blocks(const Kernel& kernel);

/// The value of an integer expression in each thread of a block; nullopt where it is not known or
/// not the same in every block.
std::optional<std::vector<std::int64_t>>
thread_values(Evaluator& evaluator, const ThreadBlock& block, const clang::Expr& expr);

/// The first of the block's locals that is threadIdx.x % 32 in every thread; nullptr without one.
const clang::VarDecl* lane_number(const Kernel& kernel, const ThreadBlock& block);

/// The one of the block's locals that code mentions and that differs from thread to thread; nullptr
/// where there is none, or several.
const clang::VarDecl* placing_local(const Kernel& kernel, const ThreadBlock& block,
                                    const clang::Stmt& code);

/// Whether these are the numbers from 0 on, each once.
bool is_permutation(std::vector<std::int64_t> values);

/// Proves that threads may take over each other's work: by running the kernel with all work moved
/// on to other threads.
///
/// The argument: let x(r) be who computes output r (a thread, or a group of its elements), and let
/// the kernel know r by its coordinates alone, computed from x in one place. Move everything on by
/// a step that is one cycle through all x and leaves no two neighbours side by side: every output
/// is computed by another x. If all outputs are still the same polynomials of the inputs, what is
/// done for an output depends on its coordinates and not on who does it, for a difference between
/// any two x would show somewhere on the cycle; so any other bijection of x to outputs will do as
/// well, and needs no run of its own. Nor may a race show up: a value that a thread left for itself
/// in shared memory, without a barrier, would be found by another one.
class ThreadExchange {
public:
  explicit ThreadExchange(const Kernel& kernel) : kernel_(kernel) {}

  /// Whether the kernel after `edits` leaves the same in its outputs, without races.
  bool keeps_outputs(const std::vector<Edit>& edits);

  /// The number, below `count`, that the step puts in the place of another one.
  static std::string moved_on(const std::string& number, std::int64_t count);

private:
  const std::vector<std::variant<Meaning, Failure>>& before();

  const Kernel& kernel_;
  std::vector<std::vector<std::int64_t>> dims_;
  std::vector<std::variant<Meaning, Failure>> before_;
};

} // namespace evo
