#include "fitness/policy/finding.hpp"

#include <clang/Basic/SourceManager.h>
#include <fmt/format.h>

namespace evo::policy {

std::string sentence(const Finding& finding, const std::string& function,
                     clang::SourceLocation place, const clang::SourceManager& sources) {
  return fmt::format("{}, line {}, {}; {}", function.empty() ? "the file" : "'" + function + "'",
                     sources.getExpansionLineNumber(place), finding.what, finding.advice);
}

} // namespace evo::policy
