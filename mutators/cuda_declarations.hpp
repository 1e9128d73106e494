// The headers of mutators/cuda_declarations/, embedded so that evo runs from any folder.
#pragma once

#include <span>
#include <string_view>

namespace evo {

struct EmbeddedHeader {
  std::string_view name; // as a kernel includes it
  std::string_view text;
};

std::span<const EmbeddedHeader> embedded_headers();

/// "<cuda_runtime.h>, <cstdint>, ...", for messages.
std::string_view provided_headers();

} // namespace evo
