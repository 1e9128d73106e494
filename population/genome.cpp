#include "population/genome.hpp"

#include <algorithm>
#include <utility>

namespace evo {
namespace {

std::optional<Kernel> parsed(const Genome& genome, const Target& target) {
  auto result = Kernel::parse(genome.source, target);
  auto* kernel = std::get_if<Kernel>(&result);
  return kernel != nullptr ? std::optional(std::move(*kernel)) : std::nullopt;
}

} // namespace

ProposalCache::Proposals Dialect::proposals(const Genome& genome, const Mutator& mutator) const {
  return cache->get({genome.id, std::string(mutator.about().name)}, [&] {
    const auto kernel = parsed(genome, target);
    return kernel ? mutator.propose(*kernel) : std::vector<Rewrite>{};
  });
}

std::vector<Gene> Dialect::preparation(const Genome& genome, const Mutator& mutator) const {
  const auto kernel = parsed(genome, target);
  return kernel ? mutator.preparation(*kernel) : std::vector<Gene>{};
}

Genome seed_genome(std::string name, std::string_view source) {
  std::string text = canonical(source);
  return {.id = digest(text), .seed = std::move(name), .trail = {}, .source = std::move(text)};
}

Genome child(const Genome& parent, const Mutator& mutator, const Rewrite& rewrite) {
  Genome result = seed_genome(parent.seed, apply_edits(parent.source, rewrite.edits));
  result.trail = parent.trail;
  result.trail.push_back({std::string(mutator.about().name), rewrite.label});
  result.keeps_order = parent.keeps_order && mutator.about().keeps_order;
  return result;
}

std::optional<Genome> append(const Genome& parent, const Gene& gene, const Dialect& dialect) {
  const Mutator* mutator = find_mutator(gene.mutator, dialect.mutators);
  if (mutator == nullptr) {
    return std::nullopt;
  }
  const auto proposals = dialect.proposals(parent, *mutator);
  const auto found = std::ranges::find(*proposals, gene.label, &Rewrite::label);
  if (found == proposals->end()) {
    return std::nullopt;
  }
  return child(parent, *mutator, *found);
}

std::variant<Genome, ReplayFailure> replay(const Genome& seed, const std::vector<Gene>& trail,
                                           const Dialect& dialect) {
  Genome genome = seed;
  for (std::size_t i = 0; i < trail.size(); ++i) {
    std::optional<Genome> next = append(genome, trail[i], dialect);
    if (!next) {
      return ReplayFailure{i};
    }
    genome = std::move(*next);
  }
  return genome;
}

Followed follow(Genome genome, const std::vector<Gene>& trail, const Dialect& dialect) {
  Followed result{.genome = std::move(genome), .dropped = {}};
  for (const Gene& gene : trail) {
    if (auto next = append(result.genome, gene, dialect)) {
      result.genome = std::move(*next);
    } else {
      result.dropped.push_back(gene);
    }
  }
  return result;
}

std::string to_string(const Gene& gene) {
  return gene.mutator + ": " + gene.label;
}

std::vector<std::string> to_strings(const std::vector<Gene>& genes) {
  std::vector<std::string> result;
  for (const Gene& gene : genes) {
    result.push_back(to_string(gene));
  }
  return result;
}

std::optional<Gene> gene_from(std::string_view line) {
  const auto colon = line.find(": ");
  if (colon == 0 || colon == std::string_view::npos || colon + 2 == line.size()) {
    return std::nullopt;
  }
  return Gene{std::string(line.substr(0, colon)), std::string(line.substr(colon + 2))};
}

std::string short_id(std::string_view id) {
  return std::string(id.substr(0, 8));
}

} // namespace evo
