#include "tests/support/goldens.hpp"

#include <algorithm>
#include <stdexcept>

#include "tests/support/kernels.hpp"

namespace evo::test {

std::vector<std::filesystem::path> files(const Mutator& mutator, std::string_view prefix) {
  const auto folder = in_repository("tests/mutators") / mutator.about().name;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(prefix)) {
      found.push_back(entry.path());
    }
  }
  std::ranges::sort(found);
  return found;
}

std::vector<Golden> goldens(const Mutator& mutator) {
  constexpr std::string_view mark = "// label: ";
  std::vector<Golden> found;
  for (const auto& file : files(mutator, "before")) {
    const std::string ending = file.filename().string().substr(std::string("before").size());
    std::string source = read(file);
    if (!source.starts_with(mark)) {
      throw std::runtime_error(file.string() + " does not begin with " + std::string(mark));
    }
    std::string label = source.substr(mark.size(), source.find('\n') - mark.size());
    found.push_back(
        {file, file.parent_path() / ("after" + ending), std::move(source), std::move(label)});
  }
  return found;
}

} // namespace evo::test
