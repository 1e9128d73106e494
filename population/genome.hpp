// A genome: a seed and the rewrites done to it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mutators/mutator.hpp"
#include "mutators/target.hpp"
#include "population/proposal_cache.hpp"

namespace evo {

/// Replaying `trail` on the seed gives `source` byte for byte; `id` is the digest of `source`,
/// which is canonical. `keeps_order` while all of the trail does (see About).
struct Genome {
  std::string id;
  std::string seed; // file name of the seed
  std::vector<Gene> trail;
  std::string source;
  bool keeps_order = true;

  bool operator==(const Genome&) const = default;
};

/// What turns genes into source: the mutators a gene may name, and the target they aim at.
/// Thread-safe.
struct Dialect {
  std::vector<const Mutator*> mutators;
  Target target;
  std::shared_ptr<ProposalCache> cache = std::make_shared<ProposalCache>();

  /// What `mutator` proposes for the genome's source; nothing when that does not parse.
  ProposalCache::Proposals proposals(const Genome& genome, const Mutator& mutator) const;
  /// What it asks for first where it proposes nothing.
  std::vector<Gene> preparation(const Genome& genome, const Mutator& mutator) const;
};

/// A seed as it stands: its canonical source and an empty trail.
Genome seed_genome(std::string name, std::string_view source);

/// `parent` after one of `mutator`'s proposals for it.
Genome child(const Genome& parent, const Mutator& mutator, const Rewrite& rewrite);

/// `parent` after `gene`; nullopt when the parent does not parse, or nothing proposes the gene.
std::optional<Genome> append(const Genome& parent, const Gene& gene, const Dialect& dialect);

/// Index of the first gene of the trail that does not apply.
struct ReplayFailure {
  std::size_t gene = 0;
};

/// `seed` after all of `trail`, or where that stops.
std::variant<Genome, ReplayFailure> replay(const Genome& seed, const std::vector<Gene>& trail,
                                           const Dialect& dialect);

/// What a trail makes of a genome, and the genes that did not apply.
struct Followed {
  Genome genome;
  std::vector<Gene> dropped;
};

/// `genome` after those of `trail` that apply, one on another.
Followed follow(Genome genome, const std::vector<Gene>& trail, const Dialect& dialect);

/// "unroll_loop: gemm/k unroll 4", as summaries print a gene.
std::string to_string(const Gene& gene);
std::vector<std::string> to_strings(const std::vector<Gene>& genes);
/// nullopt when the line is not "mutator: label".
std::optional<Gene> gene_from(std::string_view line);

/// The first eight digits of an id, as file names and messages show it.
std::string short_id(std::string_view id);

} // namespace evo
