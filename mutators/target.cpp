#include "mutators/target.hpp"

#include <algorithm>
#include <array>

namespace evo {
namespace {

constexpr int kib = 1024;

const std::array<Target, 9>& table() {
  static const std::array<Target, 9> targets{{
      {.arch = "sm_70",
       .shared_bytes_per_block = 96 * kib,
       .shared_bytes_per_sm = 96 * kib,
       .threads_per_sm = 2048,
       .blocks_per_sm = 32,
       .multiprocessors = 80},
      {.arch = "sm_75",
       .shared_bytes_per_block = 64 * kib,
       .shared_bytes_per_sm = 64 * kib,
       .threads_per_sm = 1024,
       .blocks_per_sm = 16,
       .multiprocessors = 68},
      {.arch = "sm_80",
       .shared_bytes_per_block = 163 * kib,
       .shared_bytes_per_sm = 164 * kib,
       .threads_per_sm = 2048,
       .blocks_per_sm = 32,
       .multiprocessors = 108},
      {.arch = "sm_86",
       .shared_bytes_per_block = 99 * kib,
       .shared_bytes_per_sm = 100 * kib,
       .threads_per_sm = 1536,
       .blocks_per_sm = 16,
       .multiprocessors = 82},
      {.arch = "sm_89",
       .shared_bytes_per_block = 99 * kib,
       .shared_bytes_per_sm = 100 * kib,
       .threads_per_sm = 1536,
       .blocks_per_sm = 24,
       .multiprocessors = 128},
      {.arch = "sm_90",
       .shared_bytes_per_block = 227 * kib,
       .shared_bytes_per_sm = 228 * kib,
       .threads_per_sm = 2048,
       .blocks_per_sm = 32,
       .multiprocessors = 132},
      {.arch = "sm_90a",
       .shared_bytes_per_block = 227 * kib,
       .shared_bytes_per_sm = 228 * kib,
       .threads_per_sm = 2048,
       .blocks_per_sm = 32,
       .multiprocessors = 132},
      {.arch = "sm_100",
       .shared_bytes_per_block = 227 * kib,
       .shared_bytes_per_sm = 228 * kib,
       .threads_per_sm = 2048,
       .blocks_per_sm = 32,
       .multiprocessors = 148},
      {.arch = "sm_120",
       .shared_bytes_per_block = 99 * kib,
       .shared_bytes_per_sm = 100 * kib,
       .threads_per_sm = 1536,
       .blocks_per_sm = 24,
       .multiprocessors = 170},
  }};
  return targets;
}

} // namespace

std::optional<Target> Target::find(std::string_view arch) {
  const auto& targets = table();
  const auto found = std::ranges::find(targets, arch, &Target::arch);
  return found == targets.end() ? std::nullopt : std::optional(*found);
}

std::string Target::known() {
  std::string names;
  for (const Target& target : table()) {
    names += (names.empty() ? "" : ", ") + target.arch;
  }
  return names;
}

} // namespace evo
