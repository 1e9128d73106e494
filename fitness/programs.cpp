#include "fitness/programs.hpp"

#include <cstdlib>
#include <sstream>

#include <unistd.h>

namespace evo {

namespace fs = std::filesystem;

std::vector<fs::path> path_folders() {
  std::vector<fs::path> folders;
  const char* path = std::getenv("PATH");
  std::istringstream names(path != nullptr ? path : "");
  for (std::string folder; std::getline(names, folder, ':');) {
    if (!folder.empty()) {
      folders.emplace_back(folder);
    }
  }
  return folders;
}

std::optional<fs::path> find_program(const std::string& name,
                                     const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    const fs::path file = folder / name;
    if (fs::is_regular_file(file) && access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return std::nullopt;
}

} // namespace evo
