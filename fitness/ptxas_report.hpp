// What nvcc and ptxas print.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "fitness/builder.hpp"

namespace evo {

/// "void ns::gemm<16>(float const*)" for a mangled name, as plain "gemm".
std::string plain_kernel_name(const std::string& symbol);

/// Resources per kernel from `ptxas -v`; the largest of each where instantiations share a name.
std::map<std::string, KernelResources> parse_ptxas(std::string_view output);

/// NoBuild or OverLimits with the first line that reports an error.
BuildFailure parse_failure(std::string_view output);

} // namespace evo
