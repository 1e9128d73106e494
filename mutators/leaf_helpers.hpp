// The functions that wrap single PTX instructions, in a kernel file (mutators/leaf_helpers.cu).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/names.hpp"
#include "mutators/rewrite.hpp"

namespace evo {

/// All of mutators/leaf_helpers.cu.
extern const std::string_view leaf_helpers_text;

/// The text of a helper: comment, function, newline.
std::string_view leaf_helper_text(std::string_view helper);

/// A file's leaf helpers, recognised by their instruction, and those that a rewrite adds to them.
class LeafHelpers {
public:
  explicit LeafHelpers(const Kernel& kernel);

  /// The file's function for an instruction ("mma_fp16"); nullptr if there is none.
  const clang::FunctionDecl* find(std::string_view helper) const;
  /// What the helper is called in the file. One that is missing is added.
  std::string use(std::string_view helper);
  /// Adds them in the order of ptx_instructions(), so that the order of rewrites does not matter:
  /// among the file's helpers, or behind its last #include.
  std::vector<Edit> edits() const;

private:
  unsigned place(std::size_t instruction) const;

  const Kernel& kernel_;
  Names names_;
  std::map<std::size_t, const clang::FunctionDecl*> present_; // by index of ptx_instructions()
  std::map<std::size_t, std::string> added_;                  // their names
};

} // namespace evo
