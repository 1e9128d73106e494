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
  std::string card;    // "NVIDIA H200", or "sm_86 (model)"
  std::string toolkit; // "CUDA 13.0, PyTorch 2.11.0"
  Fitness fitness;     // measured or estimated, said so; an unjudged file says so too
  bool judged = true;
};

/// Provenance, kernel source and torch binding in one text (fitness/export_template.cu.in). The
/// binding is generated from the problem; nothing changes the kernel. From its first line that
/// begins with `extern "C"` on, a kernel file counts as host code, which NVRTC does not see.
/// InputError when a dim that the entry takes is in no input's shape and has no value.
/// `seeds/<op>/naive.cu` through this function equals what `run.sh` writes with the shell alone.
std::string export_text(const Problem& problem, const std::string& source,
                        const Provenance& provenance);

/// The kernel source inside an export, byte for byte; a text that is no export comes back as it is.
std::string exported_kernel(const std::string& text);

/// Writes beside, fsyncs, renames: a reader sees the old file or the new one, never a part.
/// Throws std::system_error; then the old file still stands.
void replace_file(const std::filesystem::path& file, const std::string& text);

} // namespace evo
