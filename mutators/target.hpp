// The architecture that rewrites and builds aim at.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace evo {

inline constexpr int warp_size = 32; // threads, on every architecture

/// Per-block limits of an architecture, from the CUDA C++ Programming Guide, "Compute
/// Capabilities" table.
struct Target {
  std::string arch;               // "sm_86"
  int shared_bytes_per_block = 0; // the most a block may opt in to
  int shared_bytes_per_sm = 0;
  int threads_per_block = 1024;
  int threads_per_sm = 0;
  int blocks_per_sm = 0;
  int registers_per_sm = 65536;
  int registers_per_thread = 255;
  int multiprocessors = 0; // of the card that is common: RTX 3090, H200, ...

  /// nullopt for an architecture this table does not know.
  static std::optional<Target> find(std::string_view arch);
  /// "sm_70, sm_75, ...", for messages.
  static std::string known();
};

} // namespace evo
