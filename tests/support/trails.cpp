#include "tests/support/trails.hpp"

#include <algorithm>
#include <exception>
#include <variant>

#include <fmt/format.h>

#include "fitness/cpu/lower.hpp"
#include "mutators/kernel.hpp"
#include "mutators/rewrite.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

/// The genome without a part of its trail, as far as it has the fault.
std::optional<Genome> without(const Genome& seed, const Genome& genome, std::size_t begin,
                              std::size_t count, const Dialect& dialect, const Check& fault) {
  std::vector<Gene> trail = genome.trail;
  const auto first = trail.begin() + static_cast<std::ptrdiff_t>(begin);
  trail.erase(first, first + static_cast<std::ptrdiff_t>(std::min(count, trail.size() - begin)));
  try {
    Genome shorter = follow(seed, trail, dialect).genome;
    return fault(shorter).empty() ? std::nullopt : std::optional(std::move(shorter));
  } catch (const std::exception&) { // another fault, on the way
    return std::nullopt;
  }
}

} // namespace

Genome lora_seed(const std::string& name) {
  const std::string file = name + ".cu";
  return seed_genome(file, read(in_repository("seeds/lora") / file));
}

Genome seed_of(const std::filesystem::path& trail) {
  const std::string name = trail.stem();
  return lora_seed(name.substr(name.rfind('_') + 1));
}

std::string source_fault(const Genome& genome, const Target& target) {
  const auto parsed = Kernel::parse(genome.source, target);
  if (const auto* error = std::get_if<ParseError>(&parsed)) {
    return "it does not parse: " + error->message;
  }
  if (canonical(genome.source) != genome.source || digest(genome.source) != genome.id) {
    return "its canonical form is another";
  }
  return {};
}

std::string replay_fault(const Genome& seed, const Genome& genome,
                         const std::vector<const Mutator*>& mutators, const Target& target) {
  const auto again = replay(seed, genome.trail, {mutators, target});
  if (const auto* failure = std::get_if<ReplayFailure>(&again)) {
    return fmt::format("its rewrite {} is not proposed again", failure->gene + 1);
  }
  return std::get<Genome>(again) == genome ? "" : "replaying its trail gives another kernel";
}

std::vector<int> sizes_around_the_tile(const Genome& genome, const Target& target) {
  const auto parsed = Kernel::parse(genome.source, target);
  std::vector<int> sizes = cpu::probe_sizes(std::get<Kernel>(parsed));
  const int tile = sizes.front() + 1;
  return {tile - 1, tile + 4, std::max(sizes.back(), tile + 4)};
}

std::string value_fault(const Genome& seed, const Genome& genome, const std::vector<int>& sizes,
                        const Target& target) {
  return cpu_difference_at(lora(), seed.source, genome.source, sizes, genome.keeps_order, target);
}

std::string build_fault(const Genome& genome, const Builder& builder) {
  const auto built = builder.build(genome.id, genome.source, {});
  const auto* failure = std::get_if<BuildFailure>(&built);
  return failure == nullptr ? ""
                            : fmt::format("{}: {}", to_string(failure->verdict), failure->detail);
}

std::string proposal_fault(const Genome& genome, const Mutator& mutator, const Dialect& dialect) {
  try {
    dialect.proposals(genome, mutator);
    return {};
  } catch (const std::exception& error) {
    return fmt::format("{} throws: {}", mutator.about().name, error.what());
  }
}

Genome shrunk(const Genome& seed, Genome genome, const Dialect& dialect, const Check& fault) {
  for (std::size_t part = std::max<std::size_t>(1, genome.trail.size() / 2); part > 0;) {
    const std::size_t length = genome.trail.size();
    for (std::size_t begin = 0; begin < genome.trail.size();) {
      if (auto shorter = without(seed, genome, begin, part, dialect, fault)) {
        genome = std::move(*shorter);
      } else {
        begin += part;
      }
    }
    part = part == 1 && genome.trail.size() < length ? 1 : part / 2;
  }
  return genome;
}

} // namespace evo::test
