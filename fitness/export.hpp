// The one self-contained file a user takes away.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fitness/fitness.hpp"
#include "fitness/problem.hpp"

namespace evo {

/// What the export's header comment says.
struct Provenance {
  std::string id; // genome digest
  std::string seed_file;
  std::vector<std::string> trail; // "mutator: label", one line each
  std::uint64_t run_seed = 0;
  std::string card;     // "NVIDIA H200", or "sm_86 (model)"
  std::string toolkit;  // "CUDA 13.0, PyTorch 2.11.0"
  Fitness fitness;      // measured or estimated, said so; an unjudged file says so too
  bool judged = true;
};

/// Kernel source, torch binding and provenance in one text. The binding is generated from the
/// problem; it sits behind nothing that changes the kernel. `seeds/<op>/naive.cu` through this
/// function equals what `run.sh` writes with the shell alone.
std::string export_text(const Problem& problem, const std::string& source,
                        const Provenance& provenance);

/// Writes beside, fsyncs, renames: a reader sees the old file or the new one, never a part.
/// Throws std::system_error; then the old file still stands.
void replace_file(const std::filesystem::path& file, const std::string& text);

} // namespace evo
