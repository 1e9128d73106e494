// What a rule of the policy found.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <clang/Basic/SourceLocation.h>

namespace clang {
class SourceManager;
}

namespace evo::policy {

struct Finding {
  std::string what;   // "calls 'system'"
  std::string advice; // "remove the call"
};

/// "'system'"
std::string quoted(std::string_view name);

/// "'lora', line 12, calls 'system'; remove the call". `function` is empty outside of functions.
std::string sentence(const Finding& finding, const std::string& function,
                     clang::SourceLocation place, const clang::SourceManager& sources);

} // namespace evo::policy
