// Kernels and rewrites for tests: for sm_86 if nothing is said, every failure an exception with its
// reason.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/mutator.hpp"

namespace evo::test {

/// Under the repository's root: "seeds/lora/naive.cu".
std::filesystem::path in_repository(const std::filesystem::path& path);

std::string read(const std::filesystem::path& file);

/// sm_86.
const Target& default_target();

/// std::runtime_error with the compiler's sentence if it does not parse.
Kernel parse(std::string source, const Target& target = default_target());

bool parses(const std::string& source);

/// With the first `what` replaced; std::runtime_error if there is none.
std::string replaced(std::string text, const std::string& what, const std::string& by);

/// A parameter of tests: what to replace in a source, and why.
struct Change {
  std::string name;
  std::vector<std::pair<std::string, std::string>> replacements;
};
std::ostream& operator<<(std::ostream& stream, const Change& change);

/// With all of a change made, each replacement at the first place.
std::string changed(std::string source, const Change& change);

/// What a mutator proposes for a source.
class Proposals {
public:
  Proposals(const Mutator& mutator, std::string source);

  std::vector<std::string> labels() const;
  /// The canonical source after the rewrite of that label; std::runtime_error that lists the
  /// labels if it is not proposed.
  std::string apply(const std::string& label) const;

private:
  std::string mutator_;
  std::string source_;
  std::vector<Rewrite> rewrites_;
};

std::vector<std::string> labels(const Mutator& mutator, const std::string& source);
std::string apply(const Mutator& mutator, const std::string& source, const std::string& label);

using Trail = std::vector<std::pair<const Mutator*, std::string>>; // labels

/// A source after rewrites, one on another.
std::string followed(std::string source, const Trail& trail);

/// A parameter of tests: rewrites one on another, and what is special about their order.
struct Order {
  std::string name;
  Trail trail;
};
std::ostream& operator<<(std::ostream& stream, const Order& order);

} // namespace evo::test
