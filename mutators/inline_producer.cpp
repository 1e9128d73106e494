// Inlines a kernel that stores a matrix element by element into the one kernel that reads it.
//
//   before                                     after "split/fold inline"
//   __global__ void fold(A, B, W, folded, d) { __device__ float folded_at(A, B, row, col, old) {
//     ... row and col of this thread ...         float sum = 0.0f;
//     float sum = 0.0f;                          for (int k = 0; k < rank; ++k)
//     for (int k = 0; k < rank; ++k)               sum += A[row * rank + k] * B[col * rank + k];
//       sum += A[row * rank + k]                 return old + sum;
//              * B[col * rank + k];            }
//     folded[row * d + col]                    __global__ void split(A, B, W, words, d) {
//       = W[row * d + col] + sum;                ...
//   }                                            for (int i = 0; i < 8; ++i)
//   __global__ void split(folded, words, d) {      values[i] = W[row * d + k + i];
//     ...                                        for (int i = 0; i < 8; ++i)
//     for (int i = 0; i < 8; ++i)                  values[i] = folded_at(A, B, row, k + i,
//       values[i] = folded[row * d + k + i];                             values[i]);
//     ...                                        ...
//   }                                          }
//   fold<<<...>>>(A, B, W, folded, d);         split<<<...>>>(A, B, W, words, d);
//   split<<<...>>>(folded, words, d);
//
// The loop that read the matrix stays one that copies another matrix, so that it may still be made
// wide. In the loop behind it what a thread needs for all its elements, here its row of A, is in
// registers, and where the last element is inside nothing is tested. A read that is not into
// registers becomes the call.
//
// Precondition:
// - The producer stores to the workspace alone, in one place, and what it stores depends on the
//   coordinates of the element and on nothing else of the thread
//   (analysis/elementwise_update.hpp). What it reads is not written until the consumer is done.
// - One kernel gets the same pointer later, and reads elements row * d + column of it, one at a
//   time. It reads hardly more elements than the producer stores: evaluated for a block of each at
//   a size of many blocks. So nothing is computed over and over.
// - What is stored is no product, which the compiler would contract with an addition in the
//   consumer into one rounding. So results keep every bit.
// Legal if both files compute the same polynomials of their inputs (analysis/meaning.hpp), which
// also shows that nobody else reads the matrix.
//
// Expected gain: the matrix is neither written nor read again, and one launch is saved; the
// consumer needs more registers.
#include <algorithm>
#include <array>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/rounding.hpp"
#include "mutators/edited.hpp"
#include "mutators/inlining.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"

namespace evo {
namespace {

constexpr int large_size = 1024;         // several blocks of any tile
constexpr std::array small_sizes{5, 12}; // to measure the region by

struct Counts {
  std::int64_t reads = 0;
  std::int64_t writes = 0;
  std::int64_t bytes_written = 0;
};

/// How often blocks read elements, and what they write to a buffer.
class Traffic : public AccessObserver {
public:
  Traffic(const Evaluator& evaluator, Buffer buffer, const std::vector<ElementRead>& elements)
      : evaluator_(evaluator), buffer_(buffer), elements_(elements) {}

  void access(const Access& access) override {
    const Array& array = evaluator_.arrays()[static_cast<std::size_t>(access.array)];
    if (array.space != Array::Space::Global || array.buffer != buffer_.id) {
      return;
    }
    const auto lanes = static_cast<std::int64_t>(access.active->count());
    if (!access.write) {
      counts.reads += std::ranges::count(elements_, access.site, &ElementRead::element) * lanes;
      return;
    }
    counts.writes += lanes * access.width;
    for (std::size_t lane = 0; lane < access.active->size(); ++lane) {
      const std::int64_t end = ((*access.elements)[lane] + access.width) * array.element_bytes;
      if ((*access.active)[lane]) {
        counts.bytes_written = std::max(counts.bytes_written, end - buffer_.offset);
      }
    }
  }

  Counts counts;

private:
  const Evaluator& evaluator_;
  const Buffer buffer_;
  const std::vector<ElementRead>& elements_;
};

/// What the first blocks of a launch do to the matrix behind a parameter; nullopt where they cannot
/// be evaluated.
std::optional<Counts> traffic(const Kernel& kernel, const EvaluatedLaunch* launch,
                              const clang::ParmVarDecl& pointer, const Inlining& inlining,
                              Extent3 blocks) {
  const auto* buffer =
      launch == nullptr ? nullptr
                        : std::get_if<Buffer>(&launch->arguments[pointer.getFunctionScopeIndex()]);
  if (buffer == nullptr) {
    return std::nullopt;
  }
  Evaluator evaluator(kernel);
  Traffic seen(evaluator, *buffer, inlining.reads);
  for (int z = 0; z < blocks.z; ++z) {
    for (int y = 0; y < blocks.y; ++y) {
      for (int x = 0; x < blocks.x; ++x) {
        if (evaluator.run(launch->block_at({x, y, z}), seen)) {
          return std::nullopt;
        }
      }
    }
  }
  return seen.counts;
}

const EvaluatedLaunch* find(const std::vector<EvaluatedLaunch>& launches, const Launch& wanted) {
  const auto found = std::ranges::find(
      launches, wanted.call, [](const EvaluatedLaunch& launch) { return launch.launch.call; });
  return found == launches.end() ? nullptr : &*found;
}

/// Whether hardly an element is read twice in the whole grid.
bool reads_each_once(const Kernel& kernel, const EntryDims& dims, const Inlining& inlining) {
  const auto launches = launches_at(kernel, dims, large_size);
  const EvaluatedLaunch* producer = find(launches, *inlining.producer);
  const EvaluatedLaunch* consumer = find(launches, *inlining.consumer);
  const auto stored = traffic(kernel, producer, *inlining.value.code.array, inlining, {});
  const auto read = traffic(kernel, consumer, *inlining.matrix, inlining, {});
  return stored && read &&
         read->reads * consumer->grid.count() < 2 * stored->writes * producer->grid.count();
}

/// Empty where the producer cannot be evaluated.
std::vector<RegionExtent> region_of(const Kernel& kernel, const EntryDims& dims,
                                    const Inlining& inlining) {
  std::vector<RegionExtent> result;
  for (const int size : small_sizes) {
    const auto launches = launches_at(kernel, dims, size);
    const EvaluatedLaunch* producer = find(launches, *inlining.producer);
    const auto stored = traffic(kernel, producer, *inlining.value.code.array, inlining,
                                producer == nullptr ? Extent3{} : producer->grid);
    if (!stored) {
      return {};
    }
    result.push_back({dims.at(size), stored->bytes_written});
  }
  return result;
}

/// Whether two arguments of launches are one pointer.
bool same_pointer(const Kernel& kernel, const clang::FunctionDecl& entry, const clang::Expr& a,
                  const clang::Expr& b) {
  const Pointer pointer = pointer_of(entry, a);
  return pointer.base != nullptr && pointer.base == pointer_of(entry, b).base &&
         (same_expression(kernel, &a, &b) || (pointer.at_start && pointer == pointer_of(entry, b)));
}

/// The kernel's parameter that gets the pointer; nullptr without one.
const clang::ParmVarDecl* parameter_behind(const Kernel& kernel, const clang::FunctionDecl& entry,
                                           const Launch& launch, const clang::Expr& pointer) {
  for (unsigned i = 0; i < launch.kernel->getNumParams(); ++i) {
    const clang::ParmVarDecl* parameter = launch.kernel->getParamDecl(i);
    if (parameter->getType()->isPointerType() &&
        same_pointer(kernel, entry, *launch.arguments[i], pointer)) {
      return parameter;
    }
  }
  return nullptr;
}

/// Whether the launches behind the producer, up to the consumer, leave alone what it reads.
bool inputs_stay(const DependenceGraph& graph, std::size_t producer, std::size_t consumer) {
  for (const auto& [base, use] : graph.uses(producer)) {
    for (std::size_t later = producer + 1; later <= consumer; ++later) {
      const Uses& uses = graph.uses(later);
      const auto other = uses.find(base);
      const auto unknown = uses.find(nullptr);
      if (use.reads && ((other != uses.end() && other->second.writes) ||
                        (unknown != uses.end() && unknown->second.writes))) {
        return false;
      }
    }
  }
  return true;
}

/// A parameter of the producer through which it writes to `base`.
const clang::ParmVarDecl* only_pointer_to(const DependenceGraph& graph, const Launch& launch,
                                          const clang::VarDecl* base) {
  const clang::ParmVarDecl* found = nullptr;
  for (const clang::ParmVarDecl* parameter : launch.kernel->parameters()) {
    const bool ours =
        parameter->getType()->isPointerType() &&
        pointer_of(graph.entry(), *launch.arguments[parameter->getFunctionScopeIndex()]).base ==
            base;
    if (ours && found != nullptr) {
      return nullptr;
    }
    found = ours ? parameter : found;
  }
  return found;
}

bool reads_one_at_a_time(const Kernel& kernel, const ElementAccesses& accesses) {
  return accesses.stores.empty() && !accesses.reads.empty() &&
         std::ranges::all_of(accesses.reads, [&](const ElementRead& read) {
           return clang::isa<clang::ImplicitCastExpr>(parent_of(kernel, *read.element)) &&
                  read.index.width == accesses.reads.front().index.width;
         });
}

std::optional<Inlining> find_inlining(const Kernel& kernel, const DependenceGraph& graph,
                                      std::size_t producer, std::size_t consumer) {
  Inlining found{.producer = &graph.launches()[producer], .consumer = &graph.launches()[consumer]};
  const clang::VarDecl* base = only_written(graph.uses(producer));
  const clang::ParmVarDecl* array = base != nullptr && base->getType()->isVoidPointerType()
                                        ? only_pointer_to(graph, *found.producer, base)
                                        : nullptr;
  if (array == nullptr || !inputs_stay(graph, producer, consumer) ||
      !is_used_once(kernel, *found.producer->kernel) ||
      !is_used_once(kernel, *found.consumer->kernel)) {
    return std::nullopt;
  }
  const clang::Expr& pointer = *found.producer->arguments[array->getFunctionScopeIndex()];
  found.matrix = parameter_behind(kernel, graph.entry(), *found.consumer, pointer);
  auto reads = found.matrix == nullptr
                   ? std::nullopt
                   : element_accesses(kernel, *found.consumer->kernel, *found.matrix);
  auto value = element_value(kernel, *found.producer->kernel, *array);
  if (!reads || !value || !reads_one_at_a_time(kernel, *reads) ||
      !kernel.ast().hasSameUnqualifiedType(reads->reads.front().element->getType(),
                                           value->code.store.element->getType()) ||
      may_be_product(*value->code.store.assignment->getRHS(), *found.producer->kernel->getBody())) {
    return std::nullopt;
  }
  const auto width = [](const Launch& launch, const ElementIndex& index) {
    return launch.arguments[index.width->getFunctionScopeIndex()];
  };
  if (!same_expression(kernel, width(*found.producer, value->code.store.index),
                       width(*found.consumer, reads->reads.front().index))) {
    return std::nullopt;
  }
  found.reads = std::move(reads->reads);
  found.value = std::move(*value);
  const auto dims = find_dims(kernel);
  if (!dims || !reads_each_once(kernel, *dims, found)) {
    return std::nullopt;
  }
  found.region = region_of(kernel, *dims, found);
  return found.region.empty() ? std::nullopt : std::optional(std::move(found));
}

class InlineProducer : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "inline_producer",
        .summary = "computes the elements of a matrix in the workspace where they are read: saves "
                   "writing and reading it, and a launch",
        .before = "fold: folded[e] = W[e] + sum;  split: values[i] = folded[e];",
        .after = "split: values[i] = W[e];  values[i] = folded_at(row, col, values[i]);",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const auto graph = DependenceGraph::of(kernel);
    const std::size_t launches = graph ? graph->launches().size() : 0;
    for (std::size_t producer = 0; producer < launches; ++producer) {
      for (std::size_t consumer = producer + 1; consumer < launches; ++consumer) {
        const auto inlining = find_inlining(kernel, *graph, producer, consumer);
        auto edits = inlining ? inlined(kernel, *graph, *inlining) : std::nullopt;
        if (edits && computes_the_same(kernel, *edits)) {
          result.push_back({inlining->consumer->kernel->getNameAsString() + "/" +
                                inlining->producer->kernel->getNameAsString() + " inline",
                            std::move(*edits)});
        }
      }
    }
    return result;
  }
};

} // namespace

const Mutator& inline_producer() {
  static const InlineProducer mutator;
  return mutator;
}

} // namespace evo
