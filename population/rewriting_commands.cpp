// mutators, propose, apply, replay: what needs neither compiler nor card.
#include <sstream>
#include <string>
#include <variant>

#include <fmt/core.h>

#include "fitness/export.hpp"
#include "fitness/problem.hpp"
#include "population/commands.hpp"
#include "population/genome.hpp"
#include "population/recorder.hpp"
#include "population/trail_file.hpp"

namespace evo {
namespace {

Dialect dialect(const Options& options) {
  return {mutators(), target_of(options)};
}

std::string indented(std::string_view text, std::string_view margin) {
  std::string result;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    result += fmt::format("{}{}\n", margin, line);
  }
  return result;
}

} // namespace

int mutators_command() {
  for (const Mutator* mutator : mutators()) {
    const About& about = mutator->about();
    fmt::print("{}: {}{}\n{}  →\n{}", about.name, about.summary,
               about.keeps_order ? "" : " (changes the order of rounding)",
               indented(about.before, "    "), indented(about.after, "    "));
  }
  return 0;
}

int propose_command(const Options& options, const std::filesystem::path& file) {
  const Dialect words = dialect(options);
  const Genome genome = load_genome(file, words.target);
  const auto parsed = Kernel::parse(genome.source, words.target);
  const Kernel& kernel = std::get<Kernel>(parsed);
  for (const Mutator* mutator : words.mutators) {
    for (const Rewrite& rewrite : mutator->propose(kernel)) {
      fmt::print("{}: {}\n", mutator->about().name, rewrite.label);
    }
  }
  return 0;
}

int apply_command(const Options& options, const std::filesystem::path& file,
                  const std::string& mutator, const std::string& label) {
  const Dialect words = dialect(options);
  if (find_mutator(mutator, words.mutators) == nullptr) {
    throw InputError(fmt::format("there is no mutator {}; evo mutators lists them", mutator));
  }
  const Genome genome = load_genome(file, words.target);
  const auto result = append(genome, {mutator, label}, words);
  if (!result) {
    fmt::print(stderr, "evo: {} does not propose \"{}\" for {}; evo propose lists what it does\n",
               mutator, label, file.string());
    return 1;
  }
  fmt::print("{}", result->source);
  return 0;
}

int replay_command(const Options& options, const std::filesystem::path& seed,
                   const std::filesystem::path& trail, bool as_export) {
  const Dialect words = dialect(options);
  const Genome genome = load_genome(seed, words.target);
  const std::vector<Gene> genes = load_trail(trail);
  const auto result = replay(genome, genes, words);
  if (const auto* failure = std::get_if<ReplayFailure>(&result)) {
    fmt::print(stderr, "evo: gene {} of {}, {}, does not apply\n", failure->gene + 1,
               trail.string(), to_string(genes[failure->gene]));
    return 1;
  }
  const Genome& end = std::get<Genome>(result);
  fmt::print("{}", as_export ? export_text(load_problem(options), end.source, unjudged(end))
                             : end.source);
  return 0;
}

} // namespace evo
