// The file to read first: what a mutator is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace evo {

/// What `evo mutators` prints.
struct About {
  std::string_view name;    // "unroll_loop": the file's name, and the gene's in a trail
  std::string_view summary; // one line: what it does and what it should gain
  std::string_view before;  // a few lines of CUDA
  std::string_view after;
  /// Whether every output stays one sum in the parent's order. What changes it rounds differently,
  /// and may fail the comparison where inputs are large.
  bool keeps_order = true;
};

/// A pure function from a parsed kernel to every complete rewrite it allows: no randomness, no
/// state, no input or output. Selection alone chooses among the proposals.
class Mutator {
public:
  virtual ~Mutator() = default;

  virtual const About& about() const = 0;

  /// All legal rewrites in source order, with unique labels; empty where it does not apply. What
  /// cannot be proved legal is not proposed.
  virtual std::vector<Rewrite> propose(const Kernel& kernel) const = 0;

  /// Where it proposes nothing: rewrites of others that would help, one on another. Each may need
  /// preparation itself, or not apply at all, or not be enough. They are worth little alone, so
  /// that a search which measures every step would not find them.
  virtual std::vector<Gene> preparation(const Kernel& /*kernel*/) const { return {}; }
};

/// All mutators, in registry order.
const std::vector<const Mutator*>& mutators();

/// nullptr when there is none of that name.
const Mutator* find_mutator(std::string_view name,
                            const std::vector<const Mutator*>& among = mutators());

} // namespace evo
