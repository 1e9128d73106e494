// The text of a product core that a warp computes together on tensor cores.
#pragma once

#include <optional>
#include <string>

#include "mutators/analysis/product_core.hpp"
#include "mutators/kernel.hpp"
#include "mutators/tensor_type.hpp"

namespace evo {

/// What is called how in a kernel of warp products.
struct WarpProductNames {
  std::string lane;            // threadIdx.x % 32
  std::string fragment_column; // the same for the columns that it loads
  std::string parts;           // how many a float is split into
  std::string left_parts;
  std::string right_parts;
  std::string depth;
  std::string slot; // the number of a register of A or B
  std::string part;
  std::string order;
  std::string low;
  std::string high;
  std::string tile;
  std::string multiply; // leaf helpers
  std::string round;
  std::string take_low;
  std::string take_high;
};

/// The loop that replaces core.k, of accumulators in the layout of mma.sync.m16n8 (see
/// tensorise.cpp). In what is loaded of the right factor, `fragment_column` takes the place of
/// `column`. nullopt in a macro.
std::optional<std::string> warp_product(const Kernel& kernel, const ProductCore& core,
                                        const clang::VarDecl& column, const TensorType& type,
                                        const WarpProductNames& names);

} // namespace evo
