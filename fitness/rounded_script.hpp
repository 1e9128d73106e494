// A TorchScript function as TF32 tensor cores see it.
#pragma once

#include <string>

namespace torch::jit {
struct CompilationUnit;
}

namespace evo {

/// Adds `name` to the script: its function `original`, in which every operand of a matrix product
/// is rounded to TF32 first, to nearest and ties away from zero as cvt.rna.tf32.f32 does.
/// Intermediate results are rounded too. Sums are not: call it on float64.
void add_rounded_function(torch::jit::CompilationUnit& script, const std::string& original,
                          const std::string& name);

} // namespace evo
