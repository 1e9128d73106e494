// The machine code of a built library, as cuobjdump lists it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "fitness/precision.hpp"

namespace evo {

/// Product instructions by kernel, from `cuobjdump -sass`. A half2 instruction on zero registers
/// is the compiler's way to load a constant, and no product.
std::map<std::string, Products> parse_sass(std::string_view listing);

/// The disassembler of nvcc's own toolkit; nullopt where it was not installed.
std::optional<std::filesystem::path> find_cuobjdump(const std::filesystem::path& nvcc);

/// Of a library with device code; `folder` takes the listing, which may be megabytes. Nothing when
/// cuobjdump fails, as it does without nvdisasm.
std::map<std::string, Products> read_products(const std::filesystem::path& cuobjdump,
                                              const std::filesystem::path& library,
                                              const std::filesystem::path& folder,
                                              std::stop_token stop);

} // namespace evo
