// Folds the low-rank term into the matrix before it is multiplied: W X + A (B^T X) = (W + A B^T) X.
//
//   before                                     after "gemm/W fold update"
//   __global__ void project(B, X, T, d) {      __global__ void fold(A, B, W, folded, d) {
//     ... T[row * d + col] = sum;                ... col of this thread ...
//   }                                            float fragment[rank];
//   __global__ void update(A, T, Y, d) {         for (int k = 0; k < rank; ++k)
//     ... row and col of this thread ...           fragment[k] = B[col * rank + k];
//     for (int k = 0; k < rank; ++k)             for (each of fold_rows rows) {
//       sum += A[row * rank + k]                   for (int k = 0; k < rank; ++k)
//              * T[k * d + col];                     sum += A[row * rank + k] * fragment[k];
//     Y[row * d + col] += sum;                     folded[row * d + col]
//   }                                                  = W[row * d + col] + sum;
//                                                } }
//   project<<<...>>>(B, X, T, d);              fold<<<...>>>(A, B, W, folded, d);
//   gemm<<<...>>>(W, X, Y, d);                 gemm<<<...>>>(folded, X, Y, d);
//   update<<<...>>>(A, T, Y, d);
//
// The fold is the parent's own update with T's element replaced by B's, as the projection pairs
// them, and Y's by W's. Where the update works on the row of its blockIdx.y, a thread takes several
// rows and keeps its row of B in registers.
//
// Precondition: found by what the launches read and write, which names T, X, B, W and Y; the update
// is element by element (analysis/elementwise_update.hpp), and T is all that is in the workspace.
// Legal if both files compute the same polynomials of their inputs (analysis/meaning.hpp): whatever
// the multiplication looks like.
//
// It changes the order of rounding: the low-rank sum has no accumulator of its own any more, and W'
// is rounded before it is multiplied.
//
// Expected gain: a product of d x d by 16 and a pass over Y become one pass over W.
#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/meaning.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/edited.hpp"
#include "mutators/folding.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// The one base that `ours` reads, and does not write, and `others` does not touch; nullptr if
/// there are none or several.
const clang::VarDecl* read_by_first_alone(const Uses& ours, const Uses& others) {
  const clang::VarDecl* found = nullptr;
  for (const auto& [base, use] : ours) {
    if (use.reads && !use.writes && !others.contains(base)) {
      if (found != nullptr) {
        return nullptr;
      }
      found = base;
    }
  }
  return found;
}

std::optional<LowRank> find_low_rank(const Kernel& kernel, const DependenceGraph& graph,
                                     std::size_t project, std::size_t multiply,
                                     std::size_t update) {
  const auto& launches = graph.launches();
  const clang::VarDecl* projected = only_written(graph.uses(project));
  const clang::VarDecl* result = only_written(graph.uses(multiply));
  const auto touches = [&](std::size_t launch, const clang::VarDecl* base) {
    return graph.uses(launch).contains(base);
  };
  for (std::size_t other = 0; other < launches.size(); ++other) {
    const bool ours = other == project || other == multiply || other == update;
    if (!ours && (touches(other, projected) || touches(other, result) || touches(other, nullptr))) {
      return std::nullopt;
    }
  }
  if (projected == nullptr || result == nullptr || projected == result ||
      only_written(graph.uses(update)) != result || !touches(update, projected) ||
      touches(multiply, projected) || touches(project, result)) {
    return std::nullopt;
  }
  LowRank found{
      .project = &launches[project], .multiply = &launches[multiply], .update = &launches[update]};
  found.factor = parameter_for(graph, *found.project,
                               read_by_first_alone(graph.uses(project), graph.uses(multiply)));
  found.matrix = parameter_for(graph, *found.multiply,
                               read_by_first_alone(graph.uses(multiply), graph.uses(project)));
  found.target = parameter_for(graph, *found.update, projected);
  found.result = parameter_for(graph, *found.update, result);
  found.workspace = workspace_function(kernel, graph.entry());
  if (found.factor == nullptr || found.matrix == nullptr || found.target == nullptr ||
      found.result == nullptr || found.workspace == nullptr ||
      !projected->getType()->isVoidPointerType() || !is_used_once(kernel, *found.project->kernel) ||
      !is_used_once(kernel, *found.update->kernel)) {
    return std::nullopt;
  }
  auto code = elementwise_update(kernel, *found.update->kernel, *found.result);
  auto reads = element_accesses(kernel, *found.update->kernel, *found.target);
  if (!code || !reads || !reads->stores.empty() || reads->reads.size() != 1) {
    return std::nullopt;
  }
  found.code = std::move(*code);
  found.projected = std::move(reads->reads);
  return found;
}

/// The constants that an index of an array is multiplied by, also in variables that it mentions.
class Pitches : public SyntaxVisitor {
public:
  Pitches(const Kernel& kernel, const clang::ParmVarDecl& array) : kernel_(kernel), array_(array) {}

  bool VisitArraySubscriptExpr(clang::ArraySubscriptExpr* element) override {
    const auto* base = dyn_cast<clang::DeclRefExpr>(element->getBase()->IgnoreParenImpCasts());
    if (base != nullptr && base->getDecl() == &array_) {
      in_index_ = true;
      TraverseStmt(element->getIdx());
      in_index_ = false;
    }
    return true;
  }
  bool VisitBinaryOperator(clang::BinaryOperator* product) override {
    if (in_index_ && product->getOpcode() == clang::BO_Mul) {
      add(*product->getLHS()->IgnoreParenImpCasts());
      add(*product->getRHS()->IgnoreParenImpCasts());
    }
    return true;
  }
  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
    const auto* variable = dyn_cast<clang::VarDecl>(use->getDecl());
    if (in_index_ && variable != nullptr && variable->isLocalVarDecl() && variable->hasInit() &&
        variable->getType().isConstQualified()) {
      TraverseStmt(const_cast<clang::Expr*>(variable->getInit()));
    }
    return true;
  }

  std::vector<std::string> texts;

private:
  void add(const clang::Expr& factor) {
    const auto* use = dyn_cast<clang::DeclRefExpr>(&factor);
    const auto* variable = use == nullptr ? nullptr : dyn_cast<clang::VarDecl>(use->getDecl());
    const bool constant = variable != nullptr && variable->isConstexpr() &&
                          variable->getDeclContext()->isFileContext();
    const auto span = span_of(kernel_, factor.getSourceRange());
    if (span && (constant || clang::isa<clang::IntegerLiteral>(factor))) {
      const std::string text = render(kernel_, *span);
      if (std::ranges::find(texts, text) == texts.end()) {
        texts.push_back(text);
      }
    }
  }

  const Kernel& kernel_;
  const clang::ParmVarDecl& array_;
  bool in_index_ = false;
};

/// The forms that the fold may have, the best first.
std::vector<FoldForm> forms(const Kernel& kernel, const LowRank& low_rank) {
  Pitches pitches(kernel, *low_rank.factor);
  pitches.TraverseStmt(low_rank.project->kernel->getBody());
  pitches.texts.emplace_back();
  std::vector<FoldForm> result;
  for (const std::string& pitch : pitches.texts) {
    result.push_back({pitch, true});
    result.push_back({pitch, false});
  }
  return result;
}

bool folding_keeps_meaning(const Kernel& kernel, const std::vector<Edit>& edits) {
  const auto after = edited(kernel, edits);
  return after && same_meaning(kernel, *after);
}

class FoldLowRank : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "fold_low_rank",
        .summary = "folds the low-rank term into the matrix beforehand: one pass over it instead "
                   "of a projection and an update",
        .before = "T = B^T X;  Y = W X;  Y += A T;",
        .after = "W' = W + A B^T;  Y = W' X;",
        .keeps_order = false,
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const auto graph = DependenceGraph::of(kernel);
    const std::size_t launches = graph ? graph->launches().size() : 0;
    for (std::size_t update = 0; update < launches; ++update) {
      for (std::size_t multiply = 0; multiply < update; ++multiply) {
        for (std::size_t project = 0; project < update; ++project) {
          if (auto rewrite = find_rewrite(kernel, *graph, project, multiply, update)) {
            result.push_back(std::move(*rewrite));
          }
        }
      }
    }
    return result;
  }

private:
  static std::optional<Rewrite> find_rewrite(const Kernel& kernel, const DependenceGraph& graph,
                                             std::size_t project, std::size_t multiply,
                                             std::size_t update) {
    const auto low_rank = project != multiply
                              ? find_low_rank(kernel, graph, project, multiply, update)
                              : std::nullopt;
    for (const FoldForm& form : low_rank ? forms(kernel, *low_rank) : std::vector<FoldForm>{}) {
      auto edits = fold(kernel, graph, *low_rank, form);
      if (edits && folding_keeps_meaning(kernel, *edits)) {
        return Rewrite{low_rank->multiply->kernel->getNameAsString() + "/" +
                           low_rank->matrix->getNameAsString() + " fold " +
                           low_rank->update->kernel->getNameAsString(),
                       std::move(*edits)};
      }
    }
    return std::nullopt;
  }
};

} // namespace

const Mutator& fold_low_rank() {
  static const FoldLowRank mutator;
  return mutator;
}

} // namespace evo
