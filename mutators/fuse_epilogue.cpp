// Fuses a kernel that updates a matrix element by element into the epilogue of the kernel that
// stores those elements.
//
//   before                                     after "gemm/epilogue fuse update"
//   __global__ void gemm(W, X, Y, d) {         __global__ void gemm(W, X, Y, d, A, T) {
//     ...                                        ...
//     Y[row * d + col] = sum;                    float low = 0.0f;
//   }                                            for (int k = 0; k < rank; ++k) {
//   __global__ void update(A, T, Y, d) {           low += A[row * rank + k] * T[k * d + col];
//     ... row and col of this thread ...         }
//     float low = 0.0f;                          Y[row * d + col] = sum + low;
//     for (int k = 0; k < rank; ++k) {         }
//       low += A[row * rank + k] * T[k * d + col];
//     }
//     Y[row * d + col] += low;
//   }
//   gemm<<<...>>>(W, X, Y, d);                 gemm<<<...>>>(W, X, Y, d, A, T);
//   update<<<...>>>(A, T, Y, d);
//
// Precondition:
// - By the dependence graph (analysis/dependence_graph.hpp) the update may run where the producer
//   does: nothing in between touches the matrix, and the launches that the update needs may go
//   before the producer. It reads nothing else that the producer writes. Its kernel is launched
//   once and used nowhere else.
// - One thread of the update reads and writes one element, and depends on nothing else of the
//   thread than the element's coordinates (analysis/elementwise_update.hpp). The producer only
//   stores to the matrix.
// - The producer stores every element once, the update's threads meet each of them once, and the
//   update changes no others: evaluated over whole launches of several sizes, d below and above the
//   block (analysis/element_stores.hpp).
// - What the producer stores is no product, which the compiler would contract with the addition
//   behind it into one rounding. So results keep every bit.
// Of the update's own condition stays what the producer's does not imply already.
//
// Expected gain: the matrix is written once instead of written, read and written again, and one
// launch is saved; it costs the epilogue registers.
#include <algorithm>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/dependence_graph.hpp"
#include "mutators/analysis/elementwise_update.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/rounding.hpp"
#include "mutators/fusion.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

/// Whether the launches share no memory but `matrix` of which the producer writes any.
bool share_only(const Uses& producer, const Uses& update, const clang::VarDecl* matrix) {
  return std::ranges::all_of(producer, [&](const auto& entry) {
    const auto& [base, use] = entry;
    return base != nullptr && (base == matrix || !use.writes || !update.contains(base));
  });
}

bool is_plain_function(const clang::FunctionDecl& function) {
  return function.getTemplatedKind() == clang::FunctionDecl::TK_NonTemplate;
}

bool is_launched_once(const DependenceGraph& graph, const clang::FunctionDecl* kernel) {
  return std::ranges::count(graph.launches(), kernel, &Launch::kernel) == 1;
}

/// Sizes for the evaluation: one element, less than a block, and a little more than one of the
/// usual 256 threads.
constexpr std::array epilogue_sizes{1, 67, 259};

bool is_exact(const ElementSet& set) {
  return std::ranges::adjacent_find(set.elements) == set.elements.end() &&
         std::ranges::all_of(set.elements, [&](const Element& element) {
           return 0 <= element.column && element.column < set.width;
         });
}

/// Whether the update's threads meet every element that the producer stores exactly once, and
/// their own condition admits no other.
bool meet(const Kernel& kernel, const Fusion& fusion, const EvaluatedLaunch& producer,
          const EvaluatedLaunch& consumer) {
  ElementStore unconditional = fusion.update.store;
  unconditional.conditions.clear();
  const auto stored = stored_elements(kernel, producer, fusion.stores);
  const auto updated = stored_elements(kernel, consumer, {fusion.update.store});
  auto met = stored_elements(kernel, consumer, {unconditional});
  if (!stored || !updated || !met || !is_exact(*stored) || !is_exact(*updated) ||
      !std::ranges::includes(stored->elements, updated->elements)) {
    return false;
  }
  std::erase_if(met->elements, [&](const Element& element) {
    return !std::ranges::binary_search(stored->elements, element);
  });
  return met->elements == stored->elements;
}

bool meet_at_all_sizes(const Kernel& kernel, const Fusion& fusion) {
  const auto dims = find_dims(kernel);
  return dims && std::ranges::all_of(epilogue_sizes, [&](int size) {
           const auto evaluated = evaluate_launches(kernel, dims->at(size));
           const auto* launches = std::get_if<std::vector<EvaluatedLaunch>>(&evaluated);
           const auto find = [&](const Launch* launch) {
             return std::ranges::find(*launches, launch->call,
                                      [](const EvaluatedLaunch& one) { return one.launch.call; });
           };
           return launches != nullptr && find(fusion.producer) != launches->end() &&
                  find(fusion.consumer) != launches->end() &&
                  meet(kernel, fusion, *find(fusion.producer), *find(fusion.consumer));
         });
}

const clang::Expr* argument_for(const Launch& launch, const clang::ParmVarDecl* parameter) {
  return launch.arguments[parameter->getFunctionScopeIndex()];
}

bool may_store_sum(const Kernel& kernel, const Fusion& fusion, const ElementStore& store) {
  const clang::Expr* value = store.assignment->getRHS();
  return store.assignment->getOpcode() == clang::BO_Assign &&
         store.index.width == fusion.stores.front().index.width &&
         kernel.ast().hasSameUnqualifiedType(value->IgnoreParenImpCasts()->getType(),
                                             store.element->getType()) &&
         !value->HasSideEffects(kernel.ast()) &&
         !may_be_product(*value, *fusion.producer->kernel->getBody());
}

std::optional<Fusion> find_fusion(const Kernel& kernel, const DependenceGraph& graph,
                                  std::size_t producer, std::size_t consumer) {
  Fusion fusion{.producer = &graph.launches()[producer], .consumer = &graph.launches()[consumer]};
  const clang::VarDecl* matrix = only_written(graph.uses(consumer));
  fusion.moved = graph.needed_between(producer, consumer);
  if (matrix == nullptr || !graph.is_only_consumer(producer, consumer) ||
      !share_only(graph.uses(producer), graph.uses(consumer), matrix) ||
      !graph.may_move_before(fusion.moved, producer) ||
      !is_launched_once(graph, fusion.producer->kernel) ||
      !is_plain_function(*fusion.producer->kernel) ||
      !is_plain_function(*fusion.consumer->kernel) ||
      !is_used_once(kernel, *fusion.consumer->kernel)) {
    return std::nullopt;
  }
  const clang::ParmVarDecl* target = parameter_for(graph, *fusion.producer, matrix);
  const clang::ParmVarDecl* source = parameter_for(graph, *fusion.consumer, matrix);
  if (target == nullptr || source == nullptr ||
      !kernel.ast().hasSameType(target->getType()->getPointeeType(),
                                source->getType()->getPointeeType())) {
    return std::nullopt;
  }
  auto update = elementwise_update(kernel, *fusion.consumer->kernel, *source);
  auto accesses = element_accesses(kernel, *fusion.producer->kernel, *target);
  if (!update || !accesses || accesses->stores.empty() || !accesses->reads.empty()) {
    return std::nullopt;
  }
  fusion.update = std::move(*update);
  fusion.stores = std::move(accesses->stores);
  const bool alike =
      same_expression(kernel, argument_for(*fusion.producer, fusion.stores.front().index.width),
                      argument_for(*fusion.consumer, fusion.update.store.index.width)) &&
      std::ranges::all_of(fusion.stores, [&](const ElementStore& store) {
        return may_store_sum(kernel, fusion, store);
      });
  return alike && meet_at_all_sizes(kernel, fusion) ? std::optional(std::move(fusion))
                                                    : std::nullopt;
}

class FuseEpilogue : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "fuse_epilogue",
        .summary = "fuses an element-wise update into its producer's epilogue: saves a pass over "
                   "the matrix and a launch",
        .before = "gemm: Y[e] = sum;  update: Y[e] += low;",
        .after = "gemm: Y[e] = sum + low;",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const auto graph = DependenceGraph::of(kernel);
    const std::size_t launches = graph ? graph->launches().size() : 0;
    for (std::size_t producer = 0; producer < launches; ++producer) {
      for (std::size_t consumer = producer + 1; consumer < launches; ++consumer) {
        const auto fusion = find_fusion(kernel, *graph, producer, consumer);
        auto edits = fusion ? fuse(kernel, *graph, *fusion) : std::nullopt;
        if (edits) {
          result.push_back({fusion->producer->kernel->getNameAsString() + "/epilogue fuse " +
                                fusion->consumer->kernel->getNameAsString(),
                            std::move(*edits)});
        }
      }
    }
    return result;
  }
};

} // namespace

const Mutator& fuse_epilogue() {
  static const FuseEpilogue mutator;
  return mutator;
}

} // namespace evo
