// A kernel written into the one that reads what it stores, element by element (see
// inline_producer.cpp for when that is legal).
#pragma once

#include <optional>
#include <vector>

#include "mutators/analysis/dependence_graph.hpp"
#include "mutators/analysis/elementwise_update.hpp"
#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"
#include "mutators/workspace_size.hpp"

namespace evo {

struct Inlining {
  const Launch* producer = nullptr;
  const Launch* consumer = nullptr;
  ElementValue value = {};                    // the producer's
  const clang::ParmVarDecl* matrix = nullptr; // what the consumer calls its elements
  std::vector<ElementRead> reads = {};        // the consumer's, all of them
  std::vector<RegionExtent> region = {};      // where the elements are in the workspace
};

/// A device function that computes one element; the consumer calls it at each of its reads. A read
/// into registers stays a plain copy of the old matrix, and a loop behind it makes elements of what
/// it read. The producer, its launch, its constants and its region of the workspace are gone.
/// nullopt where a macro or a hidden name is in the way.
std::optional<std::vector<Edit>> inlined(const Kernel& kernel, const DependenceGraph& graph,
                                         const Inlining& inlining);

} // namespace evo
