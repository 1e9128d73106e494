// A built kernel file, loaded.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace evo {

class Candidate {
public:
  /// CandidateFailure (NoBuild) when it cannot be loaded or lacks `entry` or `entry`_workspace.
  Candidate(const std::filesystem::path& library, const std::string& entry);
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;
  ~Candidate();

  std::size_t workspace_bytes(std::span<const int> dims) const;
  /// On the default stream. CandidateFailure (LaunchError) when the entry returns an error.
  void launch(std::span<const float* const> inputs, float* output, std::span<const int> dims,
              void* workspace) const;

private:
  void* symbol(const std::string& name) const;

  void* handle_;
  void* entry_;
  void* workspace_;
};

} // namespace evo
