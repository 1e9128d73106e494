// Where the programs are that evo runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace evo {

/// The folders of PATH, in order.
std::vector<std::filesystem::path> path_folders();

/// The first of the folders' files of that name that can be run.
std::optional<std::filesystem::path>
find_program(const std::string& name, const std::vector<std::filesystem::path>& folders);

} // namespace evo
