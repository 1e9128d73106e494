// The state of lowering one file: what its visitors write and lower() reads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fitness/cpu/wraps.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class FunctionDecl;
class SourceLocation;
class SourceRange;
} // namespace clang

namespace evo::cpu {

class Lowering {
public:
  explicit Lowering(const Kernel& kernel) : kernel_(kernel) {}

  const Kernel& kernel() const { return kernel_; }
  Wraps& wraps() { return wraps_; }

  /// Where a range is written; an argument of a macro is where it is passed. nullopt in a macro's
  /// body.
  std::optional<Span> written(clang::SourceRange range) const;
  std::string text(Span span) const;

  /// The number of the site that is written there.
  int site(Span span);
  /// Conflicts are told by the smallest element that anything accesses.
  void note_element_size(long bytes);

  /// Only the first failure is kept.
  void fail(clang::SourceLocation where, const std::string& what);
  bool failed() const { return failure_.has_value(); }
  const std::string& failure() const { return *failure_; }

  /// C++ for the table of sites and the module.
  std::string module_text() const;

private:
  const Kernel& kernel_;
  Wraps wraps_;
  std::map<std::pair<unsigned, unsigned>, int> sites_;
  long granule_ = 4;
  std::optional<std::string> failure_;
};

/// A string literal of C++.
std::string string_literal(std::string_view text);

/// Wraps every access to memory in a __device__ or __global__ function, with barriers, shared
/// arrays, local arrays' bounds and floating-point operations.
void lower_device_code(Lowering& lowering, clang::FunctionDecl& function);

/// Turns the launches in a host function into calls.
void lower_launches(Lowering& lowering, clang::FunctionDecl& function);

} // namespace evo::cpu
