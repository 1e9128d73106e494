// Gives what a warp multiplies on tensor cores another type, or another number of parts.
#pragma once

#include <vector>

#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"
#include "mutators/thread_block.hpp"

namespace evo {

/// The rewrites of one kernel's warp products (see warp_product.hpp), labelled like those that make
/// them: its leaf helpers give way to those of another type with as deep an instruction, and the
/// constant that counts the parts gets another value. Empty where there are no such products, or of
/// several types.
std::vector<Rewrite> retyped_products(const Kernel& kernel, const clang::FunctionDecl& function,
                                      ThreadExchange& exchange);

} // namespace evo
