#include "fitness/policy/finding.hpp"

#include <clang/Basic/SourceManager.h>
#include <fmt/format.h>

namespace evo::policy {

std::string quoted(std::string_view name) {
  return fmt::format("'{}'", name);
}

std::string sentence(const Finding& finding, const std::string& function,
                     clang::SourceLocation place, const clang::SourceManager& sources) {
  return fmt::format("{}, line {}, {}; {}", function.empty() ? "the file" : quoted(function),
                     sources.getExpansionLineNumber(place), finding.what, finding.advice);
}

} // namespace evo::policy
