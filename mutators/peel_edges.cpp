// Peels the edges of the matrices off a tiled kernel: a block whose tile lies inside runs a path of
// its own that tests no bounds.
//
//   before                                after "gemm/k0 peel edges"
//   for (k0 = 0; k0 < d; k0 += K) {       const bool interior = row + M <= d && d % K == 0;
//     w[i][k] = row + i < d && k0 + k < d if (interior) {
//                   ? W[...] : 0.0f;        for (k0 = 0; k0 < d; k0 += K) {
//     ...                                     w[i][k] = W[...];
//   }                                         ...
//   if (row + j < d) Y[...] = sum;          }
//                                           Y[...] = sum;
//                                         } else {
//                                           as before
//                                         }
//
// The condition is the same for all threads of a block and has only the parts that some test needs:
// the tile ends inside, the k tiles are whole, the arrays begin aligned and the rows stay so. Tests
// go part by part. What is needed even there but differs by thread for no reason, as k0 + K + k < d
// does where the k tiles are whole, becomes the uniform k0 + K < d.
//
// Precondition: a part goes where it holds for every thread, block, iteration and size by the
// linear form of its sides (analysis/linear_form.hpp), and at least one goes in a reduction loop.
// Both files then mean the same at sizes that take either path (analysis/meaning.hpp), the new one
// without touching an element that the old one does not. Nothing is computed differently, so
// results keep every bit. A peeled kernel has no such tests left in its interior path.
//
// Expected gain: the loads' predicates, selects and scalar arms go from almost all blocks. It costs
// instruction cache, and a kernel takes the registers of the hungrier path: reshape, stage and
// vectorise first.
#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Stmt.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/meaning.hpp"
#include "mutators/analysis/path_dims.hpp"
#include "mutators/analysis/stage_model.hpp"
#include "mutators/edited.hpp"
#include "mutators/interior_condition.hpp"
#include "mutators/interior_path.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// One kernel's reduction loops.
struct Reductions {
  const clang::FunctionDecl* kernel = nullptr;
  std::vector<CountedLoop> loops;
  std::vector<Span> spans;
};

std::vector<Reductions> find_reductions(const Kernel& kernel) {
  std::vector<Reductions> result;
  for (const Stages& stages : find_stages(kernel)) {
    const auto counted = counted_loop(kernel, *stages.loop);
    const auto span = span_of(kernel, *stages.loop);
    if (!counted || !span) {
      continue;
    }
    if (result.empty() || result.back().kernel != stages.kernel) {
      result.push_back({stages.kernel, {}, {}});
    }
    result.back().loops.push_back(*counted);
    result.back().spans.push_back(*span);
  }
  return result;
}

/// Statements of a kernel's outermost braces, from one that has tests to lose up to the last.
struct Region {
  Span span;
  std::vector<Edit> edits; // that make the interior path of it
  std::string condition;
};

/// Whether a statement declares what a block has once.
bool declares_static(const clang::Stmt& statement) {
  const auto* definition = dyn_cast<clang::DeclStmt>(&statement);
  return definition != nullptr &&
         std::ranges::any_of(definition->decls(), [](const clang::Decl* declaration) {
           const auto* variable = dyn_cast<clang::VarDecl>(declaration);
           return variable != nullptr && variable->hasGlobalStorage();
         });
}

/// The region from a kernel's first test on that is needless when asked at `offset`.
std::optional<Region> region_after(const Kernel& kernel, const Reductions& reductions,
                                   unsigned offset) {
  const auto& body = *dyn_cast<clang::CompoundStmt>(reductions.kernel->getBody());
  const auto braces = span_of(kernel, body);
  if (!braces) {
    return std::nullopt;
  }
  InteriorCondition condition(kernel, *reductions.kernel, reductions.loops, offset);
  InteriorPath path(kernel, condition);
  std::optional<unsigned> begin;
  for (const clang::Stmt* statement : body.body()) {
    path.add(*statement);
    if (!begin && !path.edits().empty()) {
      begin = begin_of(kernel, *statement);
      if (!begin) {
        return std::nullopt;
      }
    }
    if (begin && declares_static(*statement)) {
      return std::nullopt;
    }
  }
  if (!begin) {
    return std::nullopt;
  }
  return Region{{*begin, braces->end - 1}, path.edits(), condition.text()};
}

std::optional<Region> find_region(const Kernel& kernel, const Reductions& reductions) {
  const auto whole = span_of(kernel, *reductions.kernel->getBody());
  const auto first = whole ? region_after(kernel, reductions, whole->end) : std::nullopt;
  return first ? region_after(kernel, reductions, first->span.begin) : std::nullopt;
}

/// The first reduction loop that loses a test.
std::optional<std::size_t> lightened_loop(const Reductions& reductions, const Region& region) {
  for (std::size_t loop = 0; loop < reductions.spans.size(); ++loop) {
    if (std::ranges::any_of(region.edits, [&](const Edit& edit) {
          return reductions.spans[loop].contains(edit.offset);
        })) {
      return loop;
    }
  }
  return std::nullopt;
}

class PeelEdges : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "peel_edges",
        .summary = "takes bounds tests out of blocks that lie inside the matrices: fewer "
                   "instructions around each load",
        .before = "w[i][k] = row + i < d && k0 + k < d ? W[...] : 0.0f;",
        .after = "if (row + block_m <= d && d % block_k == 0) {\n"
                 "  w[i][k] = W[...];\n"
                 "} else {\n"
                 "  w[i][k] = row + i < d && k0 + k < d ? W[...] : 0.0f;\n"
                 "}",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const std::vector<DeviceLoop> loops = device_loops(kernel);
    for (const Reductions& reductions : find_reductions(kernel)) {
      const auto region = find_region(kernel, reductions);
      const auto lightened = region ? lightened_loop(reductions, *region) : std::nullopt;
      const DeviceLoop* loop =
          lightened ? find_loop(loops, *reductions.loops[*lightened].loop) : nullptr;
      if (loop != nullptr) {
        const std::string interior = Names(kernel).fresh("interior");
        Rewrite rewrite{loop->name + " peel edges", {peeled(kernel, *region, interior)}};
        if (keeps_meaning(kernel, rewrite)) {
          result.push_back(std::move(rewrite));
        }
      }
    }
    return result;
  }

private:
  static Edit peeled(const Kernel& kernel, const Region& region, const std::string& interior) {
    return {region.span.begin, region.span.length(),
            "const bool " + interior + " = " + region.condition + ";\nif (" + interior + ") {\n" +
                render(kernel, region.span, region.edits) + "} else {\n" +
                render(kernel, region.span) + "}\n"};
  }

  static bool keeps_meaning(const Kernel& kernel, const Rewrite& rewrite) {
    const auto after = edited(kernel, rewrite.edits);
    return after && same_meaning(kernel, *after, dims_of_all_paths(*after));
  }
};

} // namespace

const Mutator& peel_edges() {
  static const PeelEdges mutator;
  return mutator;
}

} // namespace evo
