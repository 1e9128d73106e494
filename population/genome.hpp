// A genome: a seed and the rewrites done to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mutators/target.hpp"

namespace evo {

struct Gene {
  std::string mutator;
  std::string label;

  bool operator==(const Gene&) const = default;
};

/// Replaying `trail` on the seed gives `source` byte for byte; `id` is the digest of `source`, which
/// is canonical.
struct Genome {
  std::string id;
  std::string seed; // file name of the seed
  std::vector<Gene> trail;
  std::string source;
};

} // namespace evo
