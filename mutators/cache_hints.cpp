// Tells the caches what a kernel does with its operands and results.
//
//   before                                     after "gemm/W loads read-only"
//   w[row][k] = row < d                        w[row][k] = row < d
//                   ? W[row * d + k]                           ? __ldg(&W[row * d + k])
//                   : 0.0f;                                    : 0.0f;
//   ... *reinterpret_cast<const float4 *>(     ... __ldg(reinterpret_cast<const float4 *>(
//           &W[row * d + k]) ...                       &W[row * d + k])) ...
//
//   before                                     after "gemm/Y stores streaming"
//   Y[row * d + col] = sum[i][j];              __stcs(&Y[row * d + col], sum[i][j]);
//   *reinterpret_cast<float4 *>(&Y[...]) =     __stcs(reinterpret_cast<float4 *>(&Y[...]),
//       make_float4(...);                             make_float4(...));
//
// Asynchronous copies are left alone: they have their own way past the caches. (A __restrict__ on
// the parameter would leave the accesses as they are, but the compiler does not take a float4 that
// is loaded under a condition for read-only then.)
//
// Precondition: all that the kernel does to memory is seen (analysis/accesses.hpp).
// - read-only: a pointer to const. No launch of the kernel passes a buffer there that it also
//   writes through another parameter, so what is loaded stays the same while it runs.
// - streaming: what the kernel writes by plain assignments in its own body, each a statement, and
//   never reads, nor does a later launch.
// Nothing is computed differently, so results keep every bit.
//
// Expected gain: loads that the compiler may move across stores and barriers, and operands that
// results do not push out of L2.
#include <algorithm>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/plain_assignment.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// What the launches of a kernel file do to the buffers that they get.
class LaunchedAccesses {
public:
  explicit LaunchedAccesses(const Kernel& kernel) {
    constexpr std::int64_t any_size = 1027;
    const auto dims = find_dims(kernel);
    launches_ = dims ? launches_at(kernel, *dims, any_size) : std::vector<EvaluatedLaunch>{};
    for (const EvaluatedLaunch& launch : launches_) {
      const clang::FunctionDecl* function = launch.launch.kernel;
      if (accesses_.try_emplace(function, accesses_of(*function->getBody())).second &&
          !function->isTemplateInstantiation()) {
        kernels_.push_back(function);
      }
    }
  }

  /// In the order of their launches.
  const std::vector<const clang::FunctionDecl*>& kernels() const { return kernels_; }

  /// Whether all that a kernel does to memory is seen.
  bool known(const clang::FunctionDecl& function) const {
    const Accesses& accesses = accesses_.at(&function);
    return accesses.opaque == nullptr &&
           std::ranges::none_of(accesses.list, [](const MemoryAccess& access) {
             return access.memory.space == Space::Unknown;
           });
  }

  bool reads(const clang::FunctionDecl& function, const clang::ParmVarDecl& pointer) const {
    return std::ranges::any_of(accesses_.at(&function).list, [&](const MemoryAccess& access) {
      return access.reads && is_behind(pointer, access);
    });
  }

  std::vector<MemoryAccess> writes(const clang::FunctionDecl& function,
                                   const clang::ParmVarDecl& pointer) const {
    std::vector<MemoryAccess> result;
    std::ranges::copy_if(
        accesses_.at(&function).list, std::back_inserter(result),
        [&](const MemoryAccess& access) { return access.writes && is_behind(pointer, access); });
    return result;
  }

  /// Whether some launch of a kernel passes one buffer as this pointer and as another one that the
  /// kernel writes through.
  bool writes_what_it_reads(const clang::FunctionDecl& function,
                            const clang::ParmVarDecl& pointer) const {
    return std::ranges::any_of(launches_, [&](const EvaluatedLaunch& launch) {
      return launch.launch.kernel == &function &&
             std::ranges::any_of(function.parameters(), [&](const clang::ParmVarDecl* other) {
               return !writes(function, *other).empty() &&
                      may_overlap(buffer(launch, *other), buffer(launch, pointer));
             });
    });
  }

  /// Whether a launch reads, after one of a kernel, what that got as a pointer.
  bool is_read_later(const clang::FunctionDecl& function, const clang::ParmVarDecl& pointer) const {
    for (auto writer = launches_.begin(); writer != launches_.end(); ++writer) {
      const bool read = writer->launch.kernel == &function &&
                        std::any_of(writer + 1, launches_.end(), [&](const auto& reader) {
                          return may_read(reader, buffer(*writer, pointer));
                        });
      if (read) {
        return true;
      }
    }
    return false;
  }

private:
  static bool is_behind(const clang::ParmVarDecl& pointer, const MemoryAccess& access) {
    return access.memory.space == Space::Global && access.memory.variable == &pointer;
  }

  using BufferId = std::optional<int>; // nullopt: not known

  static BufferId buffer(const EvaluatedLaunch& launch, const clang::ParmVarDecl& pointer) {
    const auto* found = std::get_if<Buffer>(&launch.arguments[pointer.getFunctionScopeIndex()]);
    return found == nullptr ? std::nullopt : BufferId(found->id);
  }
  static bool may_overlap(BufferId a, BufferId b) { return !a || !b || a == b; }

  bool may_read(const EvaluatedLaunch& launch, BufferId wanted) const {
    const clang::FunctionDecl& function = *launch.launch.kernel;
    return !known(function) ||
           std::ranges::any_of(function.parameters(), [&](const clang::ParmVarDecl* pointer) {
             return reads(function, *pointer) && may_overlap(buffer(launch, *pointer), wanted);
           });
  }

  std::vector<EvaluatedLaunch> launches_;
  std::map<const clang::FunctionDecl*, Accesses> accesses_;
  std::vector<const clang::FunctionDecl*> kernels_;
};

/// Whether CUDA has __ldg and __stcs for a type.
bool can_be_hinted(const Kernel& kernel, clang::QualType type) {
  static const std::set<std::string> hinted{"float", "float2", "float4",       "int",  "int2",
                                            "int4",  "uint2",  "unsigned int", "uint4"};
  return !type.isVolatileQualified() &&
         hinted.contains(type.getCanonicalType().getUnqualifiedType().getAsString(
             kernel.ast().getPrintingPolicy()));
}

/// The places behind a pointer that a kernel's body loads whole values from.
class LoadedPlaces : public SyntaxVisitor {
public:
  explicit LoadedPlaces(const clang::ParmVarDecl& pointer) : pointer_(pointer) {}

  bool VisitImplicitCastExpr(clang::ImplicitCastExpr* cast) override {
    return cast->getCastKind() != clang::CK_LValueToRValue || add(*cast->getSubExpr());
  }
  bool VisitCXXConstructExpr(clang::CXXConstructExpr* copy) override {
    return !copy->getConstructor()->isCopyOrMoveConstructor() || add(*copy->getArg(0));
  }
  bool VisitCXXOperatorCallExpr(clang::CXXOperatorCallExpr* assignment) override {
    return assignment->getOperator() != clang::OO_Equal || add(*assignment->getArg(1));
  }

  std::vector<const clang::Expr*> places;

private:
  bool add(const clang::Expr& place) {
    const clang::Expr* bare = place.IgnoreParenImpCasts();
    const auto* dereferenced = dyn_cast<clang::UnaryOperator>(bare);
    const bool in_memory =
        clang::isa<clang::ArraySubscriptExpr>(bare) ||
        (dereferenced != nullptr && dereferenced->getOpcode() == clang::UO_Deref);
    if (in_memory && place.isGLValue() && memory_of(*bare).variable == &pointer_) {
      places.push_back(bare);
    }
    return true;
  }

  const clang::ParmVarDecl& pointer_;
};

/// What a load or store function takes for a place: its text, and what stands before that.
struct HintedPlace {
  Span before;       // what goes: the * of a pointer
  std::string begin; // what the function's argument begins with
  unsigned end = 0;
};

std::optional<HintedPlace> hinted_place(const Kernel& kernel, const clang::Expr& place) {
  const auto* dereferenced = dyn_cast<clang::UnaryOperator>(place.IgnoreParens());
  const auto whole = span_of(kernel, place.getSourceRange());
  if (!whole || dereferenced == nullptr) {
    return whole ? std::optional(HintedPlace{{whole->begin, whole->begin}, "&", whole->end})
                 : std::nullopt;
  }
  const auto pointer = span_of(kernel, dereferenced->getSubExpr()->getSourceRange());
  return pointer ? std::optional(HintedPlace{{whole->begin, pointer->begin}, "", whole->end})
                 : std::nullopt;
}

std::optional<Rewrite> read_only_loads(const Kernel& kernel, const LaunchedAccesses& accesses,
                                       const clang::FunctionDecl& function,
                                       const clang::ParmVarDecl& pointer) {
  const clang::QualType type = pointer.getType();
  if (!type->isPointerType() || !type->getPointeeType().isConstQualified() ||
      accesses.writes_what_it_reads(function, pointer)) {
    return std::nullopt;
  }
  LoadedPlaces loaded(pointer);
  loaded.TraverseStmt(function.getBody());
  Rewrite rewrite{function.getNameAsString() + "/" + pointer.getNameAsString() + " loads read-only",
                  {}};
  for (const clang::Expr* place : loaded.places) {
    const auto hinted =
        can_be_hinted(kernel, place->getType()) ? hinted_place(kernel, *place) : std::nullopt;
    if (!hinted) {
      return std::nullopt;
    }
    rewrite.edits.push_back(
        {hinted->before.begin, hinted->before.length(), "__ldg(" + hinted->begin});
    rewrite.edits.push_back({hinted->end, 0, ")"});
  }
  sort_edits(rewrite.edits);
  return rewrite.edits.empty() ? std::nullopt : std::optional(rewrite);
}

/// Whether a statement stands for itself: its value is not used.
bool is_statement(const Kernel& kernel, const clang::Stmt& statement) {
  const clang::Stmt* around = parent_of(kernel, statement);
  if (around != nullptr && clang::isa<clang::ExprWithCleanups>(around)) {
    around = parent_of(kernel, *around);
  }
  return around != nullptr && !clang::isa<clang::Expr>(around) &&
         !clang::isa<clang::DeclStmt>(around);
}

/// __stcs(&place, value) for place = value, around what stays as it is.
std::optional<std::vector<Edit>> streamed(const Kernel& kernel, const PlainAssignment& store) {
  const auto place = hinted_place(kernel, *store.place);
  const auto value = span_of(kernel, store.value->getSourceRange());
  if (!place || !value) {
    return std::nullopt;
  }
  return std::vector<Edit>{{place->before.begin, place->before.length(), "__stcs(" + place->begin},
                           {place->end, value->begin - place->end, ", "},
                           {value->end, 0, ")"}};
}

std::optional<Rewrite> streaming_stores(const Kernel& kernel, const LaunchedAccesses& accesses,
                                        const clang::FunctionDecl& function,
                                        const clang::ParmVarDecl& pointer) {
  const auto body = span_of(kernel, *function.getBody());
  if (!body || accesses.reads(function, pointer) || accesses.is_read_later(function, pointer)) {
    return std::nullopt;
  }
  Rewrite rewrite{
      function.getNameAsString() + "/" + pointer.getNameAsString() + " stores streaming", {}};
  for (const MemoryAccess& write : accesses.writes(function, pointer)) {
    const auto store = plain_assignment(write.statement);
    const auto edits = store && contains(*function.getBody(), *write.statement) &&
                               is_statement(kernel, *write.statement) &&
                               can_be_hinted(kernel, store->place->getType())
                           ? streamed(kernel, *store)
                           : std::nullopt;
    if (!edits) {
      return std::nullopt;
    }
    rewrite.edits.insert(rewrite.edits.end(), edits->begin(), edits->end());
  }
  sort_edits(rewrite.edits);
  return rewrite.edits.empty() ? std::nullopt : std::optional(rewrite);
}

class CacheHints : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "cache_hints",
        .summary = "loads operands through the read-only path, streams results past the caches: "
                   "more room in L2 for what is read again",
        .before = "Y[row * d + col] = sum[i][j];",
        .after = "__stcs(&Y[row * d + col], sum[i][j]);",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    const LaunchedAccesses accesses(kernel);
    std::vector<Rewrite> result;
    const auto add = [&](std::optional<Rewrite> rewrite) {
      if (rewrite) {
        result.push_back(std::move(*rewrite));
      }
    };
    for (const clang::FunctionDecl* function : accesses.kernels()) {
      if (!accesses.known(*function)) {
        continue;
      }
      for (const clang::ParmVarDecl* pointer : function->parameters()) {
        add(read_only_loads(kernel, accesses, *function, *pointer));
        add(streaming_stores(kernel, accesses, *function, *pointer));
      }
    }
    return result;
  }
};

} // namespace

const Mutator& cache_hints() {
  static const CacheHints mutator;
  return mutator;
}

} // namespace evo
