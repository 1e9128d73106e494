// What stands before preprocessing, and so in no syntax tree.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "mutators/kernel.hpp"

namespace evo::policy {

/// The architectures, as values of __CUDA_ARCH__, at which some #if of the file changes sides;
/// sorted. Or the sentence of a violation: an #if about anything else, since evo's parser and nvcc
/// could then see different files, pasted tokens, a foreign #include, a #pragma that is not about
/// unrolling, a macro that replaces a word of the language or of CUDA.
std::variant<std::vector<int>, std::string> read_directives(const Kernel& kernel);

} // namespace evo::policy
