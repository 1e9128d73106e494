// One engine per run.
#pragma once

#include <filesystem>

#include "fitness/process.hpp"

namespace evo {

/// Holds a run's folder until it goes, or the process does, however that ends.
class RunLock {
public:
  /// InputError that names the holder where there is one, and where the folder cannot be written.
  explicit RunLock(const std::filesystem::path& run_folder);

  /// Whether somebody holds the folder.
  static bool held(const std::filesystem::path& run_folder);

private:
  UniqueFd file_;
};

} // namespace evo
