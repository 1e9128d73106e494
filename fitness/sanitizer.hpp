// NVIDIA's compute-sanitizer on a built candidate: what no comparison of results can see.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>

#include "fitness/private_folder.hpp"
#include "fitness/problem.hpp"
#include "fitness/verdict.hpp"

namespace evo {

/// The tool, or the program that it is to watch, does not work here; what() is one sentence.
class SanitizerFault : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

struct SanitizerFinding {
  Verdict verdict; // OutOfBounds or Race
  std::string detail;
};

struct SanitizerOptions {
  std::filesystem::path tool; // compute-sanitizer
  std::filesystem::path nvcc;
  std::filesystem::path cache; // where the driver is built
  std::chrono::milliseconds deadline{60000};
};

/// Runs candidates under memcheck, racecheck and synccheck, each in a process of its own, by a
/// small program (the driver) that calls the entry at two odd sizes. It is built at the first
/// check.
class Sanitizer {
public:
  /// compute-sanitizer beside nvcc or on PATH.
  static std::optional<std::filesystem::path> find(const std::filesystem::path& nvcc);

  Sanitizer(SanitizerOptions options, const Problem& problem);

  /// The first finding; nullopt for none, past the deadline, or after a stop. Throws
  /// SanitizerFault.
  std::optional<SanitizerFinding> check(const std::filesystem::path& library, std::stop_token stop);

private:
  void build_driver(std::stop_token stop);
  std::optional<SanitizerFinding> watch(const std::string& tool, Verdict verdict,
                                        const std::filesystem::path& library,
                                        std::stop_token stop) const;

  SanitizerOptions options_;
  std::string source_;
  std::unique_ptr<PrivateFolder> folder_; // of the driver, once it is built
};

/// The driver's source.
std::string sanitizer_driver(const Problem& problem);

/// "Invalid __global__ write of size 4 bytes at scale(float *)+0x90": the first error that the tool
/// tells of; empty when there is none.
std::string first_error(const std::string& output);

} // namespace evo
