#include "population/data_folder.hpp"

#include <cstdlib>
#include <vector>

#include <fmt/core.h>

#include "fitness/problem.hpp"

namespace evo {

std::filesystem::path data_folder() {
  namespace fs = std::filesystem;
  const auto holds_seeds = [](const fs::path& folder) {
    return fs::is_directory(folder / "seeds");
  };
  if (const char* folder = std::getenv("EVO_DATA")) {
    if (!holds_seeds(folder)) {
      throw InputError(fmt::format("EVO_DATA is {}, but there is no folder seeds in it", folder));
    }
    return folder;
  }
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& folder : {program, program / "..", program / "../share/evo"}) {
    if (holds_seeds(folder)) {
      return folder.lexically_normal();
    }
  }
  throw InputError(fmt::format("there are no seeds near {}; name a problem with --problem, or the "
                               "folder that holds seeds with EVO_DATA",
                               program.string()));
}

} // namespace evo
