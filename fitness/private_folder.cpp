#include "fitness/private_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace evo {

PrivateFolder::PrivateFolder(const std::filesystem::path& parent) {
  std::filesystem::create_directories(parent);
  std::string name = (parent / "build-XXXXXX").string();
  if (!mkdtemp(name.data())) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot make a folder in " + parent.string());
  }
  path_ = name;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

} // namespace evo
