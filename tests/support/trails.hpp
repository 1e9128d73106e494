// What must be true of every kernel that a trail of rewrites leads to, and the shortest trail to
// one of which it is not.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "fitness/builder.hpp"
#include "population/genome.hpp"

namespace evo::test {

/// seeds/lora/<name>.cu.
Genome lora_seed(const std::string& name);

/// The seed of a trail in a file <name>_<seed>.trail.
Genome seed_of(const std::filesystem::path& trail);

/// What is wrong with a genome, in one sentence; empty: nothing.
using Check = std::function<std::string(const Genome&)>;

/// It parses, is canonical, and goes by the digest of its source.
std::string source_fault(const Genome& genome, const Target& target);

/// Following its trail from the seed once more gives the same genome.
std::string replay_fault(const Genome& seed, const Genome& genome,
                         const std::vector<const Mutator*>& mutators, const Target& target);

/// Sizes for running a genome of the LoRA product on the CPU, around its tile: one less, four more
/// (rows are aligned, the last tile is not full), two tiles and three.
std::vector<int> sizes_around_the_tile(const Genome& genome, const Target& target);

/// It runs on the CPU without fault and computes what the seed does, bit by bit.
std::string value_fault(const Genome& seed, const Genome& genome, const std::vector<int>& sizes,
                        const Target& target);

/// nvcc compiles it.
std::string build_fault(const Genome& genome, const Builder& builder);

/// The mutator proposes for it without an exception.
std::string proposal_fault(const Genome& genome, const Mutator& mutator, const Dialect& dialect);

/// The genome after a trail of which no part can be left out, rewrites that no longer apply
/// included, without losing the fault. `genome` has it and is reached from `seed`.
Genome shrunk(const Genome& seed, Genome genome, const Dialect& dialect, const Check& fault);

} // namespace evo::test
