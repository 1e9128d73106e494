// Matrices that one launch leaves in the workspace for others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "mutators/analysis/dependence_graph.hpp"
#include "mutators/analysis/element_stores.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class ArraySubscriptExpr;
class FunctionDecl;
class ParmVarDecl;
} // namespace clang

namespace evo {

/// array[row * pitch + column], read, written or pointed to.
struct MatrixElement {
  const clang::ArraySubscriptExpr* place = nullptr;
  ElementIndex index;
};

/// What a kernel does with the matrix: it mentions these elements of it and nothing else.
struct MatrixUser {
  const Launch* launch = nullptr;
  const clang::ParmVarDecl* matrix = nullptr;
  std::vector<MatrixElement> elements;
};

/// The matrix is square and begins the workspace. One launch writes it, before the others read it.
struct PrivateMatrix {
  std::vector<MatrixUser> users; // one per kernel, in order of the launches: the writer first
  bool padded = false;           // its rows are further apart than they are long

  const MatrixUser& writer() const { return users.front(); }
};

/// nullopt unless that is what is behind `base`, a parameter of the entry.
std::optional<PrivateMatrix> private_matrix(const Kernel& kernel, const DependenceGraph& graph,
                                            const clang::ParmVarDecl& base);

} // namespace evo
