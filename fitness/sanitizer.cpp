#include "fitness/sanitizer.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <future>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fitness/artifact_cache.hpp"
#include "fitness/fill_template.hpp"
#include "fitness/process.hpp"
#include "fitness/programs.hpp"

namespace evo {

extern const std::string_view sanitizer_driver_template; // fitness/sanitizer_driver.cu.in

namespace {

namespace fs = std::filesystem;

constexpr std::array sizes{131, 261}; // odd, around the tiles that are common
constexpr int found_something = 99;   // the tool's exit code then

struct Tool {
  const char* name;
  Verdict verdict;
};
constexpr std::array tools{Tool{"memcheck", Verdict::OutOfBounds}, Tool{"racecheck", Verdict::Race},
                           Tool{"synccheck", Verdict::Race}};

/// format(0), format(1), ... with commas between.
std::string listed(std::size_t count, const std::function<std::string(std::size_t)>& format) {
  std::vector<std::string> items;
  for (std::size_t i = 0; i < count; ++i) {
    items.push_back(format(i));
  }
  return fmt::format("{}", fmt::join(items, ", "));
}

long elements(const TensorSpec& tensor, const Dims& dims) {
  const std::vector<long> shape = resolve(tensor, dims);
  return std::accumulate(shape.begin(), shape.end(), 1L, std::multiplies());
}

/// "  run({17161, 2096}, 17161, 131, 16);"
std::string call(const Problem& problem, int size) {
  const Dims dims = problem.dims(size);
  const auto input = [&](std::size_t i) {
    return fmt::format("{}", elements(problem.inputs[i], dims));
  };
  const auto dim = [&](std::size_t i) { return fmt::format("{}", dims.at(problem.dim_order[i])); };
  return fmt::format("  run({{{}}}, {}, {});\n", listed(problem.inputs.size(), input),
                     elements(problem.output, dims), listed(problem.dim_order.size(), dim));
}

} // namespace

std::string sanitizer_driver(const Problem& problem) {
  const std::size_t inputs = problem.inputs.size();
  const std::size_t dims = problem.dim_order.size();
  std::string calls;
  for (const int size : sizes) {
    calls += call(problem, size);
  }
  return fill_template(
      sanitizer_driver_template,
      {{"ENTRY", problem.entry},
       {"INPUT_TYPES", listed(inputs, [](std::size_t) { return "const float *"; })},
       {"INPUTS", listed(inputs, [](std::size_t i) { return fmt::format("inputs[{}]", i); })},
       {"DIM_TYPES", listed(dims, [](std::size_t) { return "int"; })},
       {"DIM_PARAMETERS", listed(dims, [](std::size_t i) { return fmt::format("int dim{}", i); })},
       {"DIMS", listed(dims, [](std::size_t i) { return fmt::format("dim{}", i); })},
       {"CALLS", calls}});
}

std::string first_error(const std::string& output) {
  constexpr std::string_view mark = "=========";
  std::istringstream lines(output);
  std::string error;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(' ', mark.size());
    if (!line.starts_with(mark) || begin == std::string::npos) {
      continue;
    }
    const std::string words = line.substr(begin);
    if (!error.empty()) { // the line after the error says where
      return words.starts_with("at ") ? error + " " + words : error;
    }
    if (!words.starts_with("COMPUTE-SANITIZER") && words.find("SUMMARY") == std::string::npos) {
      error = words;
    }
  }
  return error;
}

std::optional<fs::path> Sanitizer::find(const fs::path& nvcc) {
  const fs::path toolkit = fs::weakly_canonical(nvcc).parent_path();
  std::vector<fs::path> folders{nvcc.parent_path(), toolkit, toolkit / "../compute-sanitizer"};
  std::ranges::move(path_folders(), std::back_inserter(folders));
  const auto tool = find_program("compute-sanitizer", folders);
  return tool ? std::optional(fs::absolute(*tool)) : std::nullopt;
}

Sanitizer::Sanitizer(SanitizerOptions options, const Problem& problem)
    : options_(std::move(options)), source_(sanitizer_driver(problem)) {
  options_.nvcc = fs::absolute(options_.nvcc); // it runs in a folder of its own
  options_.cache = fs::absolute(options_.cache);
}

std::optional<SanitizerFinding> Sanitizer::check(const fs::path& library, std::stop_token stop) {
  if (!folder_) {
    build_driver(stop);
  }
  std::vector<std::future<std::optional<SanitizerFinding>>> runs;
  for (const Tool& tool : tools) {
    runs.push_back(std::async(std::launch::async,
                              [&, tool] { return watch(tool.name, tool.verdict, library, stop); }));
  }
  std::optional<SanitizerFinding> first;
  for (auto& run : runs) {
    if (auto finding = run.get(); finding && !first) {
      first = std::move(finding);
    }
  }
  return first;
}

void Sanitizer::build_driver(std::stop_token stop) {
  auto folder = std::make_unique<PrivateFolder>(options_.cache);
  write_file(folder->path() / "driver.cu", source_);
  const ProcessResult built =
      run_process({options_.nvcc.string(), "-std=c++17", "driver.cu", "-o", "driver", "-ldl"},
                  {.directory = folder->path(),
                   .environment = {{"TMPDIR", folder->path().string()}},
                   .deadline = options_.deadline},
                  stop);
  if (!built.ok()) {
    throw SanitizerFault(
        fmt::format("the program that it is to watch does not build ({})", built.reason()));
  }
  folder_ = std::move(folder);
}

std::optional<SanitizerFinding> Sanitizer::watch(const std::string& tool, Verdict verdict,
                                                 const fs::path& library,
                                                 std::stop_token stop) const {
  const ProcessResult result = run_process(
      {options_.tool.string(), "--tool", tool, "--error-exitcode", std::to_string(found_something),
       (folder_->path() / "driver").string(), library.string()},
      {.directory = folder_->path(), .environment = {}, .deadline = options_.deadline}, stop);
  if (result.ok() || result.stopped || result.timed_out) {
    return std::nullopt;
  }
  if (result.exit_code == found_something) {
    return SanitizerFinding{verdict, fmt::format("{}: {}", tool, first_error(result.output))};
  }
  const std::string error = first_error(result.output);
  throw SanitizerFault(
      fmt::format("{} ended with {}{}{}", tool, result.reason(), error.empty() ? "" : ": ", error));
}

} // namespace evo
