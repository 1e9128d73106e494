// Where one build works.
#pragma once

#include <filesystem>

namespace evo {

/// A folder of one build's own; what is left in it goes with it.
class PrivateFolder {
public:
  /// In `parent`, which is created if need be. Throws std::system_error.
  explicit PrivateFolder(const std::filesystem::path& parent);
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

} // namespace evo
