#include "population/variation.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "population/selection.hpp"

namespace evo {
namespace {

constexpr std::size_t tournament_size = 3;
constexpr double crossover_probability = 0.2;
constexpr double second_mutation_probability = 0.25;
constexpr int attempts = 4; // at an unknown child

Proposal mutation(const Genome& parent, const Dialect& dialect, Random& random) {
  Genome genome = mutate(parent, dialect, random);
  if (chance(random, second_mutation_probability)) {
    genome = mutate(genome, dialect, random);
  }
  return {.genome = std::move(genome), .parents = {parent.id}, .dropped = {}, .fault = {}};
}

Proposal attempt(const Nursery& nursery, const Dialect& dialect, Random& random) {
  const Genome& parent = tournament(nursery.members, tournament_size, random).genome;
  if (chance(random, crossover_probability)) {
    const Genome& other = tournament(nursery.members, tournament_size, random).genome;
    if (other.trail != parent.trail) {
      return crossover(parent, other, nursery.seeds, dialect, random);
    }
  }
  return mutation(parent, dialect, random);
}

} // namespace

Genome prepared(Genome genome, const Mutator& mutator, const Dialect& dialect) {
  for (const Gene& gene : dialect.preparation(genome, mutator)) {
    const Mutator* other = find_mutator(gene.mutator, dialect.mutators);
    std::optional<Genome> next = append(genome, gene, dialect);
    if (!next && other != nullptr) {
      next = append(prepared(genome, *other, dialect), gene, dialect);
    }
    if (next) {
      genome = std::move(*next);
    }
  }
  return genome;
}

/// Asking mutators in random order, up to the first that applies, chooses uniformly among those
/// that do, and asks few of them.
Genome mutate(const Genome& parent, const Dialect& dialect, Random& random) {
  std::vector<const Mutator*> untried = dialect.mutators;
  while (!untried.empty()) {
    const auto next = untried.begin() + static_cast<std::ptrdiff_t>(pick(random, untried.size()));
    const Mutator& mutator = **next;
    untried.erase(next);
    auto proposals = dialect.proposals(parent, mutator);
    const Genome ready = proposals->empty() ? prepared(parent, mutator, dialect) : parent;
    if (ready.id != parent.id) {
      proposals = dialect.proposals(ready, mutator);
    }
    if (!proposals->empty()) {
      return child(ready, mutator, (*proposals)[pick(random, proposals->size())]);
    }
  }
  return parent;
}

Proposal crossover(const Genome& a, const Genome& b, const std::vector<Genome>& seeds,
                   const Dialect& dialect, Random& random) {
  const auto [end_a, end_b] = std::ranges::mismatch(a.trail, b.trail);
  const auto rest_a = static_cast<std::size_t>(a.trail.end() - end_a);
  const auto rest_b = static_cast<std::size_t>(b.trail.end() - end_b);
  std::vector<Gene> trail(a.trail.begin(),
                          end_a + static_cast<std::ptrdiff_t>(pick(random, rest_a + 1)));
  trail.insert(trail.end(), end_b + static_cast<std::ptrdiff_t>(pick(random, rest_b + 1)),
               b.trail.end());

  auto [genome, dropped] = follow(*std::ranges::find(seeds, a.seed, &Genome::seed), trail, dialect);
  return {.genome = std::move(genome),
          .parents = {a.id, b.id},
          .dropped = std::move(dropped),
          .fault = {}};
}

void random_walk(Genome genome, int steps, const Dialect& dialect, Random& random,
                 const std::function<bool(const Genome&)>& visit) {
  for (int i = 0; i < steps; ++i) {
    Genome next = mutate(genome, dialect, random);
    if (next.trail == genome.trail || !visit(next)) {
      return;
    }
    genome = std::move(next);
  }
}

Proposal breed(const Nursery& nursery, const Dialect& dialect, Random random) {
  try {
    Proposal proposal = attempt(nursery, dialect, random);
    for (int i = 1; i < attempts && nursery.seen.contains(proposal.genome.id); ++i) {
      proposal = attempt(nursery, dialect, random);
    }
    return proposal;
  } catch (const std::logic_error& error) {
    const Genome& parent = nursery.members.front().genome;
    return {.genome = parent, .parents = {parent.id}, .dropped = {}, .fault = error.what()};
  }
}

} // namespace evo
