// evo's words, each as a function that returns the exit code: 0, or 1 when the candidate failed.
// Bad input is an InputError.
#pragma once

#include <filesystem>
#include <string>

#include "population/options.hpp"

namespace evo {

int run_command(const Options& options);

int doctor_command(const Options& options);

int mutators_command();
int propose_command(const Options& options, const std::filesystem::path& file);
int apply_command(const Options& options, const std::filesystem::path& file,
                  const std::string& mutator, const std::string& label);
/// `trail`: a file with a line "mutator: label" per gene; a gain before it, as summaries print, and
/// lines that are empty or begin with # are skipped.
int replay_command(const Options& options, const std::filesystem::path& seed,
                   const std::filesystem::path& trail);

int check_command(const Options& options, const std::filesystem::path& file);
int bench_command(const Options& options, const std::filesystem::path& file);

int export_command(const Options& options, const std::string& run, const std::string& id);

} // namespace evo
