// Source to shared object with nvcc: the judge's flags, the target's arch, a deadline, and a
// content-addressed cache.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "fitness/precision.hpp"
#include "fitness/verdict.hpp"

namespace evo {

/// Per kernel function, from `ptxas -v` and its machine code.
struct KernelResources {
  int registers = 0;
  int shared_bytes = 0;   // static
  int spill_bytes = 0;    // stores + loads
  Products products = {}; // empty where the toolkit has no cuobjdump
};

/// Only from a successful build.
struct Artifact {
  std::string id; // genome id
  std::filesystem::path library;
  std::string cubin_digest; // of everything the library loads, host launchers included
  std::map<std::string, KernelResources> kernels; // by unmangled name
};

struct BuildFailure {
  Verdict verdict = Verdict::NoBuild; // NoBuild, BuildTimeout or OverLimits
  std::string detail;                 // nvcc's first error line
  bool known = false;                 // not tried in this run: the verdict is an earlier one
};

using BuildResult = std::variant<Artifact, BuildFailure>;

struct BuildOptions {
  std::filesystem::path nvcc;
  std::string arch; // "sm_86"
  std::filesystem::path cache;
  std::chrono::milliseconds deadline{60000};
};

/// Thread-safe: builds of different sources run side by side.
class Builder {
public:
  /// InputError when that nvcc does not run or does not know the arch.
  explicit Builder(BuildOptions options);

  /// Blocks until built, failed, past the deadline, or stopped (then BuildFailure, BuildTimeout,
  /// "stopped"). Throws std::system_error when the cache cannot be written.
  BuildResult build(const std::string& id, const std::string& source, std::stop_token stop) const;

  /// The command that builds kernel.cu, for messages.
  std::string command_line() const;

  /// nvcc from CUDA_HOME, PATH or the default place; InputError names the ways to get it.
  static std::filesystem::path
  find_nvcc(const std::filesystem::path& default_home = "/usr/local/cuda");
  /// "13.0" of that nvcc.
  static std::string nvcc_version(const std::filesystem::path& nvcc);

private:
  std::vector<std::string> command() const;
  BuildResult compile(const std::string& source, const std::string& key,
                      std::stop_token stop) const;

  BuildOptions options_;
  std::optional<std::filesystem::path> cuobjdump_;
  std::string flags_key_; // flags, nvcc version, and whether machine code is read
};

} // namespace evo
