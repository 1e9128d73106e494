#include "fitness/ptxas_report.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <regex>
#include <sstream>

#include <cxxabi.h>

namespace evo {
namespace {

constexpr std::size_t longest_detail = 300;

std::string demangle(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : symbol;
}

void keep_larger(KernelResources& kept, const KernelResources& other) {
  kept.registers = std::max(kept.registers, other.registers);
  kept.shared_bytes = std::max(kept.shared_bytes, other.shared_bytes);
  kept.spill_bytes = std::max(kept.spill_bytes, other.spill_bytes);
}

/// The number before `unit` in a line like "Used 65 registers, 1024 bytes smem".
int number_before(const std::string& line, const std::string& unit) {
  std::smatch match;
  return std::regex_search(line, match, std::regex("(\\d+) " + unit)) ? std::stoi(match[1]) : 0;
}

} // namespace

std::string plain_kernel_name(const std::string& symbol) {
  static const std::string unnamed = "(anonymous namespace)";
  std::string name = demangle(symbol);
  for (auto at = name.find(unnamed); at != std::string::npos; at = name.find(unnamed)) {
    name.erase(at, unnamed.size());
  }
  name.erase(std::min(name.find_first_of("<("), name.size()));
  return name.substr(name.find_last_of(" :") + 1); // npos + 1 is 0
}

std::map<std::string, KernelResources> parse_ptxas(std::string_view output) {
  static const std::regex entry("Compiling entry function '([^']+)'");
  std::map<std::string, KernelResources> kernels;
  std::string name;
  KernelResources current;
  std::istringstream lines{std::string(output)};
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, entry)) {
      name = plain_kernel_name(match[1]);
      current = {};
    }
    current.spill_bytes +=
        number_before(line, "bytes spill stores") + number_before(line, "bytes spill loads");
    if (!name.empty() && line.find("Used ") != std::string::npos) {
      current.registers = number_before(line, "registers");
      current.shared_bytes = number_before(line, "bytes smem");
      keep_larger(kernels[name], current);
    }
  }
  return kernels;
}

BuildFailure parse_failure(std::string_view output) {
  static const std::regex error("(error|fatal)\\s*:|undefined reference");
  std::istringstream lines{std::string(output)};
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, error)) {
      const bool over = line.find("uses too much") != std::string::npos;
      return {over ? Verdict::OverLimits : Verdict::NoBuild, line.substr(0, longest_detail)};
    }
  }
  return {Verdict::NoBuild,
          std::string(output.substr(0, std::min(output.find('\n'), longest_detail)))};
}

} // namespace evo
