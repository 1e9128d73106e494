// Built libraries on disk, by key; shared by threads and by runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "fitness/builder.hpp"

namespace evo {

/// A record <key>.json names its library, <digest of its bytes>.so. Both are renamed into place, so
/// writers of one key need no lock, and a damaged entry is one that is not there.
class ArtifactCache {
public:
  explicit ArtifactCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Without `id`.
  std::optional<Artifact> find(const std::string& key) const;

  /// Moves artifact.library into the cache; returns the artifact with its new place.
  Artifact store(const std::string& key, Artifact artifact) const;

private:
  std::filesystem::path folder_;
};

/// The bytes of a file; empty when it cannot be read.
std::string read_file(const std::filesystem::path& file);

/// Throws std::system_error.
void write_file(const std::filesystem::path& file, const std::string& text);

} // namespace evo
