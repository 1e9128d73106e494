#include "population/variation.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "population/selection.hpp"

namespace evo {
namespace {

enum class Change { Append, AppendTwo, Insert, Replace, Remove, Cross };

constexpr std::array changes{std::pair{Change::Append, 0.35}, std::pair{Change::AppendTwo, 0.15},
                             std::pair{Change::Insert, 0.15}, std::pair{Change::Replace, 0.15},
                             std::pair{Change::Remove, 0.05}, std::pair{Change::Cross, 0.15}};
constexpr int attempts = 4; // at an unknown child

Change choose_change(Random& random) {
  std::vector<double> weights;
  for (const auto& [change, weight] : changes) {
    weights.push_back(weight);
  }
  return changes[pick_weighted(random, weights)].first;
}

const Genome& seed_of(const Genome& genome, const std::vector<Genome>& seeds) {
  return *std::ranges::find(seeds, genome.seed, &Genome::seed);
}

using Place = std::vector<Gene>::const_iterator;

Place pick_gene(const Genome& genome, Random& random) {
  return genome.trail.begin() + static_cast<std::ptrdiff_t>(pick(random, genome.trail.size()));
}

/// What a parent was before the gene at `place`.
Genome before(const Genome& parent, Place place, const std::vector<Genome>& seeds,
              const Dialect& dialect) {
  return follow(seed_of(parent, seeds), {parent.trail.begin(), place}, dialect).genome;
}

/// `changed` after the parent's genes from `place` on.
Proposal with_rest(Genome changed, const Genome& parent, Place place, const Dialect& dialect) {
  auto [genome, dropped] = follow(std::move(changed), {place, parent.trail.end()}, dialect);
  return {.genome = std::move(genome),
          .parents = {parent.id},
          .mutator = {},
          .dropped = std::move(dropped),
          .fault = {}};
}

Proposal append(const Genome& parent, int count, const Nursery& nursery, const Dialect& dialect,
                Random& random) {
  Genome genome = parent;
  for (int i = 0; i < count; ++i) {
    genome = mutate(genome, dialect, nursery.credit, random);
  }
  const std::string mutator =
      genome.trail.size() > parent.trail.size() ? genome.trail.back().mutator : "";
  return {.genome = std::move(genome),
          .parents = {parent.id},
          .mutator = mutator,
          .dropped = {},
          .fault = {}};
}

Proposal attempt(const Nursery& nursery, const Dialect& dialect, Random& random) {
  const Genome& parent = choose_parent(nursery.members, random).genome;
  const Change change = choose_change(random);
  if (change == Change::Cross) {
    const Genome& other = choose_parent(nursery.members, random).genome;
    if (other.trail != parent.trail) {
      return crossover(parent, other, nursery.seeds, dialect, random);
    }
  }
  if (!parent.trail.empty() && change == Change::Insert) {
    return insert(parent, nursery.seeds, dialect, nursery.credit, random);
  }
  if (!parent.trail.empty() && change == Change::Replace) {
    return replace(parent, nursery.seeds, dialect, random);
  }
  if (!parent.trail.empty() && change == Change::Remove) {
    return remove(parent, nursery.seeds, dialect, random);
  }
  return append(parent, change == Change::AppendTwo ? 2 : 1, nursery, dialect, random);
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

/// Asking mutators in random order, up to the first that applies, chooses among those that do in
/// the same proportion, and asks few of them.
Genome mutate(const Genome& parent, const Dialect& dialect, const Credit& credit, Random& random) {
  std::vector<const Mutator*> untried = dialect.mutators;
  std::vector<double> weights;
  for (const Mutator* mutator : untried) {
    weights.push_back(credit.weight(mutator->about().name));
  }
  while (!untried.empty()) {
    const auto next = static_cast<std::ptrdiff_t>(pick_weighted(random, weights));
    const Mutator& mutator = *untried[static_cast<std::size_t>(next)];
    untried.erase(untried.begin() + next);
    weights.erase(weights.begin() + next);
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

Proposal insert(const Genome& parent, const std::vector<Genome>& seeds, const Dialect& dialect,
                const Credit& credit, Random& random) {
  const Place place = pick_gene(parent, random);
  const Genome start = before(parent, place, seeds, dialect);
  Genome changed = mutate(start, dialect, credit, random);
  const bool is_new = changed.trail.size() > start.trail.size();
  std::string mutator = is_new ? changed.trail.back().mutator : "";
  Proposal result = with_rest(std::move(changed), parent, place, dialect);
  result.mutator = std::move(mutator);
  return result;
}

Proposal replace(const Genome& parent, const std::vector<Genome>& seeds, const Dialect& dialect,
                 Random& random) {
  const Place place = pick_gene(parent, random);
  const Genome start = before(parent, place, seeds, dialect);
  const Mutator& mutator = *find_mutator(place->mutator, dialect.mutators);
  const auto proposals = dialect.proposals(start, mutator);
  Proposal result = with_rest(child(start, mutator, (*proposals)[pick(random, proposals->size())]),
                              parent, std::next(place), dialect);
  result.mutator = place->mutator;
  return result;
}

Proposal remove(const Genome& parent, const std::vector<Genome>& seeds, const Dialect& dialect,
                Random& random) {
  const Place place = pick_gene(parent, random);
  return with_rest(before(parent, place, seeds, dialect), parent, std::next(place), dialect);
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

  auto [genome, dropped] = follow(seed_of(a, seeds), trail, dialect);
  return {.genome = std::move(genome),
          .parents = {a.id, b.id},
          .mutator = {},
          .dropped = std::move(dropped),
          .fault = {}};
}

void random_walk(Genome genome, int steps, const Dialect& dialect, Random& random,
                 const std::function<bool(const Genome&)>& visit) {
  for (int i = 0; i < steps; ++i) {
    Genome next = mutate(genome, dialect, {}, random);
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
  } catch (const std::exception& error) {
    const Genome& parent = nursery.members.front().genome;
    return {.genome = parent,
            .parents = {parent.id},
            .mutator = {},
            .dropped = {},
            .fault = error.what()};
  }
}

} // namespace evo
