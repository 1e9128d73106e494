// The kernels in tests/mutators/<name>/: before*.cu with "// label: <label>" as its first line, the
// after*.cu of the same ending, and unchanged*.cu.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "mutators/mutator.hpp"

namespace evo::test {

/// The mutator's files whose names begin with `prefix`, sorted.
std::vector<std::filesystem::path> files(const Mutator& mutator, std::string_view prefix);

struct Golden {
  std::filesystem::path file;  // before_tiled.cu
  std::filesystem::path after; // after_tiled.cu
  std::string before;
  std::string label;
};

/// std::runtime_error if a before*.cu does not name the rewrite to apply.
std::vector<Golden> goldens(const Mutator& mutator);

} // namespace evo::test
