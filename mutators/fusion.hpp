// A kernel written into the one whose result it updates (see fuse_epilogue.cpp for when that is
// legal).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "mutators/analysis/dependence_graph.hpp"
#include "mutators/analysis/elementwise_update.hpp"
#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"

namespace evo {

struct Fusion {
  const Launch* producer = nullptr;
  const Launch* consumer = nullptr;
  std::vector<ElementStore> stores = {}; // the producer's
  ElementwiseUpdate update = {};         // the consumer's
  std::vector<std::size_t> moved = {};   // launches that go before the producer, in order
};

/// The update's code at each of the producer's stores, its pointers and sizes added to the
/// producer's parameters and arguments, the moved launches before it, and the consumer, its launch
/// and the constants that nothing else names gone. nullopt where a macro or a hidden name is in the
/// way.
std::optional<std::vector<Edit>> fuse(const Kernel& kernel, const DependenceGraph& graph,
                                      const Fusion& fusion);

} // namespace evo
