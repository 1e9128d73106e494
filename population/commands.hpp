// evo's words, each as a function that returns the exit code: 0, or 1 when the candidate failed.
// Bad input is an InputError.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "population/options.hpp"

namespace evo {

int run_command(const Options& options);

/// What a resumed run is asked for that it was not asked for at first.
struct Overrides {
  std::optional<int> generations;
  std::optional<int> jobs;
  std::optional<double> time_budget_s; // from now on
  std::filesystem::path out;           // empty: as before
};

/// Goes on with a run that was interrupted. InputError when there is nothing to go on with.
int resume_command(const Options& options, const std::string& run, const Overrides& overrides);

int doctor_command(const Options& options);

int mutators_command();
int propose_command(const Options& options, const std::filesystem::path& file);
int apply_command(const Options& options, const std::filesystem::path& file,
                  const std::string& mutator, const std::string& label);
/// `trail`: a file with a line "mutator: label" per gene; a gain before it, as summaries print, and
/// lines that are empty or begin with # are skipped. `as_export`: with the PyTorch binding.
int replay_command(const Options& options, const std::filesystem::path& seed,
                   const std::filesystem::path& trail, bool as_export);

/// What each rewrite of the trail is worth, as a table: on the way up from the seed, or when it
/// alone is left out.
int climb_command(const Options& options, const std::filesystem::path& seed,
                  const std::filesystem::path& trail, bool leave_one_out);

int check_command(const Options& options, const std::filesystem::path& file);

struct BenchOptions {
  std::filesystem::path against; // empty: alone
  int trials = 1;                // duels with it
};
int bench_command(const Options& options, const std::filesystem::path& file,
                  const BenchOptions& bench);

struct SelftestOptions {
  std::filesystem::path zoo;     // empty: tests/adversarial of evo
  std::vector<std::string> only; // names of kernels; empty: all of them, and the bred ones
  std::filesystem::path json;    // empty: none
};

/// Judges kernels that cheat and kernels that do not. 1 when one is missed or falsely accused.
int selftest_command(const Options& options, const SelftestOptions& selftest);

/// How right each file is in every case, beside the reference and the ideal, as Markdown.
int accuracy_command(const Options& options, const std::vector<std::filesystem::path>& files);

/// Judges so many candidates bred from the seeds twice, the second time with every tenth replaced
/// by one that crashes, traps or hangs.
int stress_command(const Options& options, int candidates);

int export_command(const Options& options, const std::string& run, const std::string& id);

} // namespace evo
