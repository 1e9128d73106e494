#include "population/trail_file.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/core.h>

#include "fitness/problem.hpp"
#include "population/files.hpp"

namespace evo {
namespace {

/// "  1.35x  mutator: label" or "mutator: label" as a gene; nullopt for an empty line or a comment.
std::optional<Gene> gene_of(std::string line, const std::filesystem::path& file, int number) {
  const auto trimmed = [](std::string text) {
    text.erase(0, std::min(text.find_first_not_of(" \t/"), text.size()));
    text.erase(text.find_last_not_of(" \t\r") + 1);
    return text;
  };
  line = trimmed(std::move(line));
  if (line.empty() || line.starts_with('#')) {
    return std::nullopt;
  }
  const auto blank = line.find(' ');
  if (blank != std::string::npos && line[blank - 1] != ':') { // a gain
    line = trimmed(line.substr(blank));
  }
  const auto gene = gene_from(line);
  if (!gene) {
    throw InputError(
        fmt::format("{}, line {}: a gene is written \"mutator: label\"", file.string(), number));
  }
  return gene;
}

} // namespace

std::vector<Gene> load_trail(const std::filesystem::path& file) {
  std::vector<Gene> trail;
  std::istringstream lines(read_text(file));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    if (auto gene = gene_of(line, file, ++number)) {
      trail.push_back(std::move(*gene));
    }
  }
  return trail;
}

} // namespace evo
