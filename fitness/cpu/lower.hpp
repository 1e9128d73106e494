// CUDA source to host C++ that runs on fitness/cpu/runtime.hpp.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "fitness/builder.hpp"
#include "mutators/kernel.hpp"

namespace evo::cpu {

/// The host source: launches become calls of the runtime, __shared__ per-block memory, threads
/// fibers, every access to memory through a pointer or a shared array a checked one. A construct
/// that has no lowering is a BuildFailure (NoBuild) that names it.
std::variant<std::string, BuildFailure> lower(const Kernel& kernel);

/// Compiles lowered source to a shared object for the worker, cached by content. Thread-safe.
class HostBuilder {
public:
  explicit HostBuilder(std::filesystem::path cache);
  std::variant<std::filesystem::path, BuildFailure> build(const std::string& lowered,
                                                          std::stop_token stop) const;

private:
  std::filesystem::path cache_;
};

/// Sizes around the kernel's own tile: tile - 1, tile + 1, 2 tile + 3 for the largest block tile
/// (bounded below by 17 and above by 300 so that a run stays short).
std::vector<int> probe_sizes(const Kernel& kernel);

} // namespace evo::cpu
