#include <array>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fitness/artifact_cache.hpp"
#include "fitness/cpu/lower.hpp"
#include "fitness/private_folder.hpp"
#include "fitness/process.hpp"
#include "mutators/rewrite.hpp"

namespace evo::cpu {
namespace {

constexpr std::chrono::seconds deadline{60};

struct Compiler {
  std::string command; // empty: there is none
  std::string version;
};

/// The one that nvcc takes from PATH.
const Compiler& compiler() {
  static const Compiler found = [] {
    for (const char* command : {"g++", "c++"}) {
      try {
        return Compiler{command, run_process({command, "--version"}, {}).output};
      } catch (const std::system_error&) {
        continue; // not on PATH
      }
    }
    return Compiler{};
  }();
  return found;
}

/// Whether the processor fuses multiplications and additions only when told to.
bool needs_fma_flag() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("fma") != 0;
#else
  return false;
#endif
}

/// Contracts as nvcc does by default. What the runtime checks or allows, the compiler must not
/// reason from: indices beyond an array, pointers of other types.
std::vector<std::string> compiler_flags() {
  std::vector<std::string> flags{"-std=c++17",
                                 "-O2",
                                 "-w",
                                 "-shared",
                                 "-fPIC",
                                 "-fvisibility=hidden",
                                 "-ffp-contract=fast",
                                 "-fno-math-errno",
                                 "-fno-strict-aliasing",
                                 "-fno-aggressive-loop-optimizations",
                                 "-fwrapv"};
  if (needs_fma_flag()) {
    flags.emplace_back("-mfma");
  }
  return flags;
}

std::string first_error(const std::string& output) {
  const std::size_t error = output.find("error: ");
  const std::size_t begin = error == std::string::npos ? 0 : output.rfind('\n', error) + 1;
  return output.substr(begin, output.find('\n', begin) - begin);
}

} // namespace

HostBuilder::HostBuilder(std::filesystem::path cache) : cache_(std::filesystem::absolute(cache)) {}

std::variant<std::filesystem::path, BuildFailure> HostBuilder::build(const std::string& lowered,
                                                                     std::stop_token stop) const {
  if (compiler().command.empty()) {
    return BuildFailure{Verdict::NoBuild, "there is neither g++ nor c++ on PATH, one of which "
                                          "compiles kernels for the CPU: install g++"};
  }
  const ArtifactCache cache(cache_);
  const std::string key = digest(
      fmt::format("{}\n{}\n{}", compiler().version, fmt::join(compiler_flags(), " "), lowered));
  if (const auto artifact = cache.find(key)) {
    return artifact->library;
  }
  const PrivateFolder folder(cache_);
  write_file(folder.path() / "kernel.cpp", lowered);
  std::vector<std::string> command{compiler().command};
  std::ranges::copy(compiler_flags(), std::back_inserter(command));
  std::ranges::copy(std::array{"kernel.cpp", "-o", "kernel.so", "-lm"},
                    std::back_inserter(command));
  const ProcessResult result = run_process(command,
                                           {.directory = folder.path(),
                                            .environment = {{"TMPDIR", folder.path().string()}},
                                            .deadline = deadline},
                                           stop);
  if (result.stopped || result.timed_out) {
    return BuildFailure{Verdict::BuildTimeout, "the host compiler: " + result.reason()};
  }
  if (!result.ok()) {
    return BuildFailure{Verdict::NoBuild, first_error(result.output)};
  }
  Artifact artifact;
  artifact.library = folder.path() / "kernel.so";
  return cache.store(key, std::move(artifact)).library;
}

} // namespace evo::cpu
