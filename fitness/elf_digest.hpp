// Telling whether two shared objects are the same program.
#pragma once

#include <string>
#include <string_view>

namespace evo {

/// The digest of what an ELF64 shared object loads: device code (nvcc embeds it as a section),
/// host code with its launch configurations, constants and symbols. Symbol tables for debuggers,
/// temporary file names and build ids are not loaded and not in it. Equal digests behave equally.
/// std::runtime_error for bytes that are not such a file.
std::string loaded_digest(std::string_view elf);

} // namespace evo
