// A low-rank term folded into a matrix before it is multiplied (see fold_low_rank.cpp for when that
// is legal).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mutators/analysis/dependence_graph.hpp"
#include "mutators/analysis/elementwise_update.hpp"
#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace evo {

/// T = B^T X by one launch, Y = W X by another, Y += A T by a third.
struct LowRank {
  const Launch* project = nullptr;
  const Launch* multiply = nullptr;
  const Launch* update = nullptr;
  ElementwiseUpdate code = {};                    // the update's
  std::vector<ElementRead> projected = {};        // where the update reads T
  const clang::ParmVarDecl* result = nullptr;     // Y, of the update
  const clang::ParmVarDecl* target = nullptr;     // T, of the update
  const clang::ParmVarDecl* factor = nullptr;     // B, of the projection
  const clang::ParmVarDecl* matrix = nullptr;     // W, of the multiplication
  const clang::FunctionDecl* workspace = nullptr; // tells the bytes; all of them are T
};

/// How the result is written down.
struct FoldForm {
  std::string pitch;         // elements from one row of B to the next; empty: B is laid out like T
  bool several_rows = false; // of W per thread, with its row of B in registers
};

/// The projection gone, the update made W' = W + A B^T in the workspace, before the multiplication,
/// which reads W'. nullopt where a macro or a hidden name is in the way, or the update's code does
/// not allow the form.
std::optional<std::vector<Edit>> fold(const Kernel& kernel, const DependenceGraph& graph,
                                      const LowRank& low_rank, const FoldForm& form);

} // namespace evo
