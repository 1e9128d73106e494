// A parsed .cu file: the only thing a mutator sees.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "mutators/target.hpp"

namespace clang {
class ASTContext;
class ASTUnit;
class FunctionDecl;
} // namespace clang

namespace evo {

struct KnownMeanings;

/// Why a source is not a kernel: one sentence per compiler error, "line:column: message".
struct ParseError {
  std::string message;
};

/// A .cu source parsed without errors, as device code of one target, against evo's own CUDA
/// declarations (mutators/cuda_declarations/). It owns a Clang AST and is not thread-safe: it
/// lives inside one task.
class Kernel {
public:
  static std::variant<Kernel, ParseError> parse(std::string source, const Target& target);

  /// What another compilation sees of the same source, after Clang's `options`
  /// ("--cuda-host-only"): for reading the whole file, not for rewriting it.
  static std::variant<Kernel, ParseError> parse_as(std::string source, const Target& target,
                                                   const std::vector<std::string>& options);

  Kernel(Kernel&&) noexcept;
  Kernel& operator=(Kernel&&) noexcept;
  ~Kernel();

  const std::string& source() const { return source_; }
  const Target& target() const { return target_; }
  clang::ASTContext& ast() const;
  /// What same_meaning() has found out about this kernel, so that it runs once for many rewrites.
  std::shared_ptr<KnownMeanings>& known_meanings() const { return known_meanings_; }

private:
  Kernel(std::string source, Target target, std::unique_ptr<clang::ASTUnit> unit);

  std::string source_;
  Target target_;
  std::unique_ptr<clang::ASTUnit> unit_;
  mutable std::shared_ptr<KnownMeanings> known_meanings_;
};

} // namespace evo
