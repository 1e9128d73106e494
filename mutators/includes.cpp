#include "mutators/includes.hpp"

namespace evo {

std::optional<Edit> include(const Kernel& kernel, const std::string& header) {
  const std::string& source = kernel.source();
  const std::string line = "#include <" + header + ">\n";
  if (source.find(line) != std::string::npos) {
    return std::nullopt;
  }
  const std::size_t first = source.find("#include");
  return Edit{static_cast<unsigned>(first == std::string::npos ? 0 : first), 0, line};
}

} // namespace evo
