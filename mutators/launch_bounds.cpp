// Tells the compiler how many threads a block has, and how many blocks should share a
// multiprocessor.
//
//   before                                  after "gemm/launch bounds 2"
//   __global__ void gemm(...) { ... }       __global__ void
//   gemm<<<grid, gemm_threads>>>(...);      __launch_bounds__(gemm_threads, 2) gemm(...) { ... }
//
// Precondition: every launch of the kernel gives the same block extent, an expression of constants
// declared before the kernel; the bound is written with their names, so a later change of a
// constant keeps both together. So many blocks have room on the target as far as threads go.
// What is computed stays the same.
//
// Expected gain: without a bound the compiler may spend registers as for any block, and a launch of
// many threads can fail for them. With a minimum of blocks it saves registers until that many fit,
// which hides latency; too many of them spill.
#include <algorithm>
#include <array>
#include <functional>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

constexpr std::array block_counts{2, 3, 4, 6, 8};

/// The threads of a block, as the launch writes them.
struct BlockExtent {
  std::vector<const clang::Expr*> factors;
  std::int64_t threads = 1;
};

/// The arguments of a dim3 that somebody wrote; the expression itself where it is a number.
std::vector<const clang::Expr*> written_factors(const clang::Expr& block) {
  std::vector<const clang::Expr*> factors;
  const clang::Expr* bare = block.IgnoreUnlessSpelledInSource();
  if (const auto* dim3 = clang::dyn_cast<clang::CXXConstructExpr>(bare)) {
    for (const clang::Expr* argument : dim3->arguments()) {
      if (!clang::isa<clang::CXXDefaultArgExpr>(argument)) {
        factors.push_back(argument->IgnoreUnlessSpelledInSource());
      }
    }
    return factors;
  }
  return {bare};
}

std::optional<BlockExtent> constant_extent(const Kernel& kernel, const clang::Expr& block) {
  BlockExtent extent;
  extent.factors = written_factors(block);
  for (const clang::Expr* factor : extent.factors) {
    const auto value = constant_value(kernel, *factor);
    if (!value || *value < 1) {
      return std::nullopt;
    }
    extent.threads *= *value;
  }
  return extent.factors.empty() ? std::nullopt : std::optional(extent);
}

/// Whether all names in it stand at namespace scope before a declaration.
class DeclaredBefore : public SyntaxVisitor {
public:
  DeclaredBefore(const clang::SourceManager& sources, const clang::Decl& declaration)
      : sources_(sources), declaration_(declaration) {}

  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override { // false ends the walk
    const clang::ValueDecl* name = use->getDecl();
    return name->getDeclContext()->isFileContext() &&
           sources_.isBeforeInTranslationUnit(name->getLocation(), declaration_.getLocation());
  }

private:
  const clang::SourceManager& sources_;
  const clang::Decl& declaration_;
};

bool known_before(const Kernel& kernel, const BlockExtent& extent, const clang::Decl& declaration) {
  DeclaredBefore names(kernel.ast().getSourceManager(), declaration);
  return std::ranges::all_of(extent.factors, [&](const clang::Expr* factor) {
    return names.TraverseStmt(const_cast<clang::Expr*>(factor));
  });
}

bool same_extent(const Kernel& kernel, const BlockExtent& a, const BlockExtent& b) {
  return std::ranges::equal(a.factors, b.factors, [&](const auto* x, const auto* y) {
    return same_expression(kernel, x, y);
  });
}

/// The extent that all launches of a kernel share.
std::optional<BlockExtent> shared_extent(const Kernel& kernel, const std::vector<Launch>& launches,
                                         const clang::FunctionDecl& function) {
  std::optional<BlockExtent> shared;
  for (const Launch& launch : launches) {
    if (launch.kernel != &function) {
      continue;
    }
    const auto extent = constant_extent(kernel, *launch.block);
    if (!extent || (shared && !same_extent(kernel, *shared, *extent))) {
      return std::nullopt;
    }
    shared = extent;
  }
  return shared && known_before(kernel, *shared, function) ? shared : std::nullopt;
}

/// "gemm_threads", "(threads_x) * (threads_y)"; nullopt inside a macro.
std::optional<std::string> text_of(const Kernel& kernel, const BlockExtent& extent) {
  std::string text;
  const Binding binding = extent.factors.size() > 1 ? Binding::Product : Binding::Sum;
  for (const clang::Expr* factor : extent.factors) {
    const auto factor_text = operand(kernel, *factor, binding);
    if (!factor_text) {
      return std::nullopt;
    }
    text += (text.empty() ? "" : " * ") + *factor_text;
  }
  return text;
}

/// Where the bounds stand, or may be put.
struct BoundsSite {
  Span span;
  std::string present; // the choice that stands there: "", "bounds", "bounds 2"
};

/// `__launch_bounds__(...)` as a whole, which is a macro.
std::optional<Span> written_bounds(const Kernel& kernel, const clang::Attr& attribute) {
  const clang::SourceManager& sources = kernel.ast().getSourceManager();
  return span_of(kernel, sources.getExpansionRange(attribute.getLocation()).getAsRange());
}

std::optional<BoundsSite> site_of(const Kernel& kernel, const clang::FunctionDecl& function) {
  const auto* bounds = function.getAttr<clang::CUDALaunchBoundsAttr>();
  if (bounds == nullptr) {
    const auto name = span_of(kernel, function.getNameInfo().getSourceRange());
    return name ? std::optional(BoundsSite{{name->begin, name->begin}, ""}) : std::nullopt;
  }
  const auto span = written_bounds(kernel, *bounds);
  const clang::Expr* blocks = bounds->getMinBlocks();
  const auto count =
      blocks != nullptr ? constant_value(kernel, *blocks) : std::optional<std::int64_t>(0);
  if (!span || !count) {
    return std::nullopt;
  }
  return BoundsSite{*span, *count == 0 ? "bounds" : "bounds " + std::to_string(*count)};
}

std::vector<Rewrite> proposals(const Kernel& kernel, const clang::FunctionDecl& function,
                               const BlockExtent& extent) {
  const auto site = site_of(kernel, function);
  const auto threads = text_of(kernel, extent);
  if (!site || !threads) {
    return {};
  }
  std::vector<Rewrite> result;
  const auto propose = [&](const std::string& choice, const std::string& text) {
    if (choice != site->present) {
      result.push_back({function.getNameAsString() + "/launch " + choice,
                        {{site->span.begin, site->span.length(), text}}});
    }
  };
  propose("bounds", "__launch_bounds__(" + *threads + ") ");
  for (const int blocks : block_counts) {
    if (blocks <= kernel.target().blocks_per_sm &&
        blocks * extent.threads <= kernel.target().threads_per_sm) {
      propose("bounds " + std::to_string(blocks),
              "__launch_bounds__(" + *threads + ", " + std::to_string(blocks) + ") ");
    }
  }
  if (!site->present.empty()) {
    propose("bounds undo", "");
  }
  return result;
}

class LaunchBounds : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "launch_bounds",
        .summary = "bounds a kernel's threads and asks for blocks per multiprocessor: registers "
                   "that fit",
        .before = "__global__ void gemm(...);",
        .after = "__global__ void __launch_bounds__(gemm_threads, 2) gemm(...);",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const std::vector<Launch> launches = find_launches(kernel);
    std::vector<const clang::FunctionDecl*> seen;
    for (const Launch& launch : launches) {
      if (std::ranges::find(seen, launch.kernel) != seen.end()) {
        continue;
      }
      seen.push_back(launch.kernel);
      if (const auto extent = shared_extent(kernel, launches, *launch.kernel)) {
        std::ranges::move(proposals(kernel, *launch.kernel, *extent), std::back_inserter(result));
      }
    }
    return result;
  }
};

} // namespace

const Mutator& launch_bounds() {
  static const LaunchBounds mutator;
  return mutator;
}

} // namespace evo
