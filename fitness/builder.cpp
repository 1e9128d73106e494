#include "fitness/builder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <regex>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fitness/artifact_cache.hpp"
#include "fitness/elf_digest.hpp"
#include "fitness/private_folder.hpp"
#include "fitness/problem.hpp"
#include "fitness/process.hpp"
#include "fitness/programs.hpp"
#include "fitness/ptxas_report.hpp"
#include "fitness/sass.hpp"
#include "mutators/rewrite.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;

/// Those of torch's extension builder, as the judge calls it.
std::vector<std::string> compiler_flags(const std::string& arch) {
  const std::string number = arch.substr(arch.find('_') + 1);
  return {"-O3",
          "-std=c++17",
          "-D__CUDA_NO_HALF_OPERATORS__",
          "-D__CUDA_NO_HALF_CONVERSIONS__",
          "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
          "-D__CUDA_NO_HALF2_OPERATORS__",
          "--expt-relaxed-constexpr",
          fmt::format("-gencode=arch=compute_{0},code=sm_{0}", number),
          "-Xcompiler",
          "-fPIC",
          "-shared",
          "-Xptxas",
          "-v"};
}

std::string ask(const fs::path& nvcc, const std::string& question) {
  try {
    const ProcessResult answer = run_process({nvcc.string(), question}, {});
    if (answer.ok()) {
      return answer.output;
    }
    throw InputError(fmt::format("{} {} failed: {}; is this CUDA toolkit complete?", nvcc.string(),
                                 question, answer.reason()));
  } catch (const std::system_error& error) {
    throw InputError(fmt::format("{} does not run: {}", nvcc.string(), error.code().message()));
  }
}

void check_arch(const fs::path& nvcc, const std::string& arch) {
  std::istringstream words(ask(nvcc, "--list-gpu-code"));
  const std::vector<std::string> known{std::istream_iterator<std::string>(words), {}};
  // sm_90a is sm_90 to some toolkits' lists.
  const std::string base = arch.substr(0, arch.find_last_of("0123456789") + 1);
  for (const std::string& name : known) {
    if (name == arch || name == base) {
      return;
    }
  }
  throw InputError(fmt::format("target {} is not known to {} ({}), which knows {}; choose one of "
                               "these or another toolkit",
                               arch, nvcc.string(), Builder::nvcc_version(nvcc),
                               fmt::join(known, ", ")));
}

std::string without(std::string text, const std::string& part) {
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part)) {
    text.erase(at, part.size());
  }
  return text;
}

} // namespace

Builder::Builder(BuildOptions options) : options_(std::move(options)) {
  // nvcc runs in a folder of its own.
  options_.cache = fs::absolute(options_.cache);
  options_.nvcc = fs::absolute(options_.nvcc);
  check_arch(options_.nvcc, options_.arch);
  cuobjdump_ = find_cuobjdump(options_.nvcc);
  flags_key_ = fmt::format("{}\n{}{}", fmt::join(compiler_flags(options_.arch), " "),
                           ask(options_.nvcc, "--version"), cuobjdump_ ? "sass" : "");
}

BuildResult Builder::build(const std::string& id, const std::string& source,
                           std::stop_token stop) const {
  const std::string key = digest(flags_key_ + "\n" + source);
  auto artifact = ArtifactCache(options_.cache).find(key);
  BuildResult result = artifact ? BuildResult(std::move(*artifact)) : compile(source, key, stop);
  if (auto* built = std::get_if<Artifact>(&result)) {
    built->id = id;
  }
  return result;
}

std::vector<std::string> Builder::command() const {
  std::vector<std::string> words{options_.nvcc.string()};
  std::ranges::copy(compiler_flags(options_.arch), std::back_inserter(words));
  std::ranges::copy(std::array{"kernel.cu", "-o", "kernel.so"}, std::back_inserter(words));
  return words;
}

std::string Builder::command_line() const {
  return fmt::format("{}", fmt::join(command(), " "));
}

BuildResult Builder::compile(const std::string& source, const std::string& key,
                             std::stop_token stop) const {
  const PrivateFolder folder(options_.cache);
  // Always the same names: they reach the library.
  write_file(folder.path() / "kernel.cu", source);
  const ProcessResult nvcc = run_process(command(),
                                         {.directory = folder.path(),
                                          .environment = {{"TMPDIR", folder.path().string()}},
                                          .deadline = options_.deadline},
                                         stop);
  if (nvcc.stopped || nvcc.timed_out) {
    return BuildFailure{Verdict::BuildTimeout,
                        nvcc.stopped ? nvcc.reason() : "nvcc ran " + nvcc.reason()};
  }
  if (nvcc.signal != 0) {
    return BuildFailure{Verdict::NoBuild, "nvcc ended by " + nvcc.reason()};
  }
  if (!nvcc.ok()) {
    return parse_failure(without(nvcc.output, folder.path().string() + "/"));
  }
  const fs::path library = folder.path() / "kernel.so";
  std::map<std::string, KernelResources> kernels = parse_ptxas(nvcc.output);
  if (cuobjdump_) {
    for (auto& [name, products] : read_products(*cuobjdump_, library, folder.path(), stop)) {
      kernels[name].products = std::move(products);
    }
  }
  return ArtifactCache(options_.cache)
      .store(key, {.id = {},
                   .library = library,
                   .cubin_digest = loaded_digest(read_file(library)),
                   .kernels = std::move(kernels)});
}

fs::path Builder::find_nvcc(const fs::path& default_home) {
  std::vector<fs::path> folders = path_folders();
  if (const char* home = std::getenv("CUDA_HOME")) {
    folders.insert(folders.begin(), fs::path(home) / "bin");
  }
  folders.push_back(default_home / "bin");
  if (auto nvcc = find_program("nvcc", folders)) {
    return std::move(*nvcc);
  }
  throw InputError(
      fmt::format("nvcc was not found in CUDA_HOME, on PATH or in {}: install the CUDA "
                  "toolkit (12.0 or newer), or set CUDA_HOME to where it is",
                  default_home.string()));
}

std::string Builder::nvcc_version(const fs::path& nvcc) {
  const std::string text = ask(nvcc, "--version");
  std::smatch match;
  if (!std::regex_search(text, match, std::regex("release (\\d+\\.\\d+)"))) {
    throw InputError(
        fmt::format("{} --version names no release; is it NVIDIA's compiler?", nvcc.string()));
  }
  return match[1];
}

} // namespace evo
