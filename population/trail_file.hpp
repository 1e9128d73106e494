// Trails as files, one gene a line.
#pragma once

#include <filesystem>
#include <vector>

#include "population/genome.hpp"

namespace evo {

/// A file with a line "mutator: label" per gene; a gain before it, as summaries print, and lines
/// that are empty or begin with # are skipped. InputError names the line that is none of these.
std::vector<Gene> load_trail(const std::filesystem::path& file);

} // namespace evo
