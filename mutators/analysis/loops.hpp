// The loops of device code, with the names that labels use for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mutators/analysis/counted_loop.hpp"

namespace clang {
class Attr;
class FunctionDecl;
class Stmt;
} // namespace clang

namespace evo {

/// A counted loop of a __global__ or __device__ function, written outside macros.
struct DeviceLoop {
  CountedLoop counted;
  const clang::FunctionDecl* function = nullptr;
  std::vector<const clang::Attr*> attributes; // pragmas before it, in source order
  std::string name; // "gemm/k"; the second of that name in the kernel is "gemm/k#2"
};

/// In source order, an outer loop before its inner ones.
std::vector<DeviceLoop> device_loops(const Kernel& kernel);

/// The one of `loops` that the statement is; nullptr if it is none, as in a macro.
const DeviceLoop* find_loop(const std::vector<DeviceLoop>& loops, const clang::ForStmt& loop);

/// How often the body runs, where start, limit and step are compile-time constants.
std::optional<std::int64_t> trip_count(const Kernel& kernel, const CountedLoop& loop);

/// How often the innermost body is written out where every loop inside `outer` with a constant
/// trip count is unrolled.
std::int64_t inner_copies(const Kernel& kernel, const DeviceLoop& outer,
                          const std::vector<DeviceLoop>& loops);

/// More copies than that would only fill the instruction cache.
constexpr std::int64_t max_copies = 4096;

/// Where the loop begins, with the pragmas before it; nullopt where one is not on a whole line.
std::optional<unsigned> begin_of(const Kernel& kernel, const DeviceLoop& loop);
/// The same for any loop, which may be an AttributedStmt.
std::optional<unsigned> begin_of(const Kernel& kernel, const clang::Stmt& loop);

} // namespace evo
