// Names for what a rewrite adds.
#pragma once

#include <set>
#include <string>

#include "mutators/kernel.hpp"

namespace clang {
class FunctionDecl;
} // namespace clang

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

/// The names that a function declares or uses.
std::set<std::string> names_in(const clang::FunctionDecl& function);

/// The names that the file declares at namespace scope.
std::set<std::string> names_at_file_scope(const Kernel& kernel);

} // namespace evo
