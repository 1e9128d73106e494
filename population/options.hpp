// What the command line can say, and what of it is contradictory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fitness/problem.hpp"
#include "population/genome.hpp"
#include "population/search.hpp"

namespace evo {

enum class BackendChoice { Auto, Cuda, Model };

struct Options {
  SearchSettings search;
  std::optional<double> time_budget_s;
  BackendChoice backend = BackendChoice::Auto;
  std::optional<int> device;
  std::string target; // empty: the card's own, or sm_86 without one
  std::filesystem::path problem;
  std::vector<std::filesystem::path> seeds; // empty: the problem's
  std::filesystem::path incumbent;          // empty: none
  std::filesystem::path out;                // empty: the problem's output_file, here
  std::filesystem::path population = "population";
  std::vector<int> sizes;             // empty: the problem's
  Level level = Level::Default;       // of the cases that contenders must pass
  std::filesystem::path fitness_from; // a journal that gives the verdicts; empty: a judge does
  std::filesystem::path store;        // empty: store.sqlite in the population folder
  bool fresh = false;                 // knows nothing from the store, and adds to it
  double disk_limit_gib = 20;         // of runs and store
  bool sanitizer = true;              // elites pass compute-sanitizer where it exists
  std::vector<std::string> without;   // mutators that a search leaves out
};

/// InputError for the first contradiction, one sentence.
void check(const Options& options);

/// Those that a search may use. InputError for a name that none has.
std::vector<const Mutator*> mutators_of(const Options& options);

/// The problem with the sizes and seeds that the options give. InputError as Problem::load.
Problem load_problem(const Options& options);

/// A file's kernel, an export's too, as a genome named by the file. InputError when it cannot be
/// read, or does not parse, with the line as the file has it.
Genome load_genome(const std::filesystem::path& file, const Target& target);

/// The problem's seeds. InputError as load_genome, and for two of one name.
std::vector<Genome> load_seeds(const Problem& problem, const Target& target);

/// The target that the options name, or the one assumed without a card.
Target target_of(const Options& options);

/// The target of `arch`; InputError that lists the known ones.
Target known_target(const std::string& arch);

} // namespace evo
