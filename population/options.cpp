#include "population/options.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "fitness/export.hpp"
#include "population/files.hpp"

namespace evo {
namespace {

constexpr const char* default_target = "sm_86";

void require(bool holds, const std::string& sentence) {
  if (!holds) {
    throw InputError(sentence);
  }
}

} // namespace

void check(const Options& options) {
  require(options.search.generations >= 0,
          "--generations must not be negative; 0 only judges the seeds");
  require(options.search.population >= 2,
          "--pop must be at least 2, one child for each of the two islands");
  require(options.search.jobs >= 1, "--jobs must be at least 1");
  require(!options.time_budget_s || *options.time_budget_s > 0,
          "--time-budget must be more than 0 seconds");
  require(!options.device || *options.device >= 0,
          "--device must not be negative; it counts the cards from 0");
  require(options.backend != BackendChoice::Model || !options.device,
          "--device names a card, but --backend model uses none; leave one of them out");
  require(std::ranges::all_of(options.sizes, [](int size) { return size > 0; }),
          "--sizes must be positive");
  require(options.disk_limit_gib > 0, "--disk-limit must be more than 0 GiB");
  if (!options.target.empty()) {
    known_target(options.target);
  }
}

std::vector<const Mutator*> mutators_of(const Options& options) {
  std::vector<const Mutator*> result = mutators();
  for (const std::string& name : options.without) {
    if (std::erase(result, find_mutator(name)) == 0) {
      throw InputError(fmt::format(
          "there is no mutator {} to do without, or it is named twice; evo mutators lists them",
          name));
    }
  }
  return result;
}

Problem load_problem(const Options& options) {
  const bool folder = std::filesystem::is_directory(options.problem);
  Problem problem = Problem::load(folder ? options.problem / "problem.toml" : options.problem);
  if (!options.sizes.empty()) {
    problem.sizes = options.sizes;
  }
  if (!options.seeds.empty()) {
    problem.seeds = options.seeds;
  }
  return problem;
}

Genome load_genome(const std::filesystem::path& file, const Target& target) {
  const std::string source = exported_kernel(read_text(file));
  const auto parsed = Kernel::parse(source, target);
  if (const auto* error = std::get_if<ParseError>(&parsed)) {
    throw InputError(fmt::format("{} does not parse: {}", file.string(), error->message));
  }
  return seed_genome(file.filename().string(), source);
}

std::vector<Genome> load_seeds(const Problem& problem, const Target& target) {
  std::vector<Genome> seeds;
  for (const auto& file : problem.seeds) {
    Genome seed = load_genome(file, target);
    require(std::ranges::find(seeds, seed.seed, &Genome::seed) == seeds.end(),
            fmt::format("two seeds are named {}; rename one, for trails name seeds by file",
                        seed.seed));
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

Target target_of(const Options& options) {
  return known_target(options.target.empty() ? default_target : options.target);
}

Target known_target(const std::string& arch) {
  const auto target = Target::find(arch);
  require(target.has_value(),
          fmt::format("evo does not know the target {}; choose one of {}", arch, Target::known()));
  return *target;
}

} // namespace evo
