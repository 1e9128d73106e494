// How a child comes about: mutations, crossover, and the choice between them. All choices come from
// the slot's generator.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "population/credit.hpp"
#include "population/individual.hpp"
#include "population/random.hpp"

namespace evo {

/// A child before anything has judged it.
struct Proposal {
  Genome genome;
  std::vector<std::string> parents;
  std::string mutator; // of its last new gene; empty for no new one
  std::vector<Gene> dropped;
  std::string fault; // not empty: a mutator broke its promise, and this says how
};

/// `genome` after what a mutator asks for first, as far as that applies, each prepared likewise.
Genome prepared(Genome genome, const Mutator& mutator, const Dialect& dialect);

/// `parent` after one rewrite: a mutator chosen among those with proposals, if need be after their
/// preparation, in proportion to its credit, then one of its proposals. The parent itself when
/// nothing applies.
Genome mutate(const Genome& parent, const Dialect& dialect, const Credit& credit, Random& random);

// Changes inside a trail. Its genes from there on follow as far as they apply; the others are
// dropped. `parent.seed` names one of `seeds`, and its trail is not empty.

/// Rewrites as mutate() does at some place before the end.
Proposal insert(const Genome& parent, const std::vector<Genome>& seeds, const Dialect& dialect,
                const Credit& credit, Random& random);

/// Replaces a gene by another proposal of its mutator.
Proposal replace(const Genome& parent, const std::vector<Genome>& seeds, const Dialect& dialect,
                 Random& random);

/// Leaves a gene out.
Proposal remove(const Genome& parent, const std::vector<Genome>& seeds, const Dialect& dialect,
                Random& random);

/// Both trails' common prefix, then a beginning of the rest of `a`, then an end of the rest of `b`,
/// on the seed of `a`. Genes that no longer apply are dropped.
Proposal crossover(const Genome& a, const Genome& b, const std::vector<Genome>& seeds,
                   const Dialect& dialect, Random& random);

/// Rewrites `genome` again and again as mutate() does, without credit, and shows what each step
/// leads to, until there were `steps` of them, nothing applies, or `visit` returns false.
void random_walk(Genome genome, int steps, const Dialect& dialect, Random& random,
                 const std::function<bool(const Genome&)>& visit);

/// What one island's children are bred from: complete generations only, so that it is the same
/// whenever a child is proposed.
struct Nursery {
  std::vector<Individual> members; // not empty
  std::vector<Genome> seeds;
  std::set<std::string> seen; // ids that are known already
  Credit credit;
};

/// A child: usually one or two rewrites at the end of a parent's trail, else a change inside it or
/// a crossover of two. Tries again a few times when the result is known already. A mutator's bug,
/// whatever it throws, costs the slot, not the run: the fittest member's genome with a `fault`.
Proposal breed(const Nursery& nursery, const Dialect& dialect, Random random);

} // namespace evo
