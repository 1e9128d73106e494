// Names for what a rewrite adds.
#pragma once

#include <set>
#include <string>

#include "mutators/kernel.hpp"

namespace evo {

/// The identifiers of a kernel file, wherever they stand, and those handed out since.
class Names {
public:
  explicit Names(const Kernel& kernel);

  /// `wanted`, or `wanted_2`, `wanted_3`, ...: the first that the file does not use.
  std::string fresh(const std::string& wanted);

private:
  std::set<std::string> used_;
};

} // namespace evo
