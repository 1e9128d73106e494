// Which launches of the entry must stay in order.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "mutators/analysis/launches.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class ParmVarDecl;
class Stmt;
class VarDecl;
} // namespace clang

namespace evo {

/// Where a pointer of the entry points: into the memory behind one of its parameters. Two pointers
/// of one base may overlap whatever their offsets; different parameters never overlap, which is
/// the entry's contract.
struct Pointer {
  const clang::VarDecl* base = nullptr; // nullptr: unknown, may point anywhere
  bool at_start = false;                // no offset: two such pointers of one base are equal

  bool operator==(const Pointer&) const = default;
};

Pointer pointer_of(const clang::FunctionDecl& entry, const clang::Expr& argument);

struct Use {
  bool reads = false;
  bool writes = false;
};

/// What a launch does to memory, by its base: a parameter of the entry, a device variable, or
/// nullptr for memory that may be any.
using Uses = std::map<const clang::VarDecl*, Use>;

/// The one base that a launch writes; nullptr if there are several or unknown ones.
const clang::VarDecl* only_written(const Uses& uses);

enum class Dependence { ReadAfterWrite, WriteAfterRead, WriteAfterWrite };

/// Nodes are the launches in order; an edge from an earlier to a later one says that the later one
/// must stay behind it.
class DependenceGraph {
public:
  /// nullopt unless the entry's launches stand in a straight line: each a statement of its own in
  /// the entry's outermost braces, in one stream, with nothing between the first and the last but
  /// definitions and calls that touch no device memory.
  static std::optional<DependenceGraph> of(const Kernel& kernel);

  const clang::FunctionDecl& entry() const { return *entry_; }
  const std::vector<Launch>& launches() const { return launches_; }
  const Uses& uses(std::size_t launch) const { return uses_[launch]; }

  /// The direct dependence of `later` on `earlier`.
  std::optional<Dependence> dependence(std::size_t earlier, std::size_t later) const;

  /// The launches between the two that `last` needs done before it, directly or not, in order.
  std::vector<std::size_t> needed_between(std::size_t first, std::size_t last) const;

  /// Whether `moved` may start, in their order, before the earlier launch `place`: none depends on
  /// a launch it passes, their arguments are known there, and no call in between concerns their
  /// kernels.
  bool may_move_before(const std::vector<std::size_t>& moved, std::size_t place) const;

  /// Whether an expression of the entry has its value already before the launch `place`.
  bool is_known_before(const clang::Expr& expression, std::size_t place) const;

  /// Whether no launch between the two touches what `producer` writes.
  bool is_only_consumer(std::size_t producer, std::size_t consumer) const;

private:
  bool is_prepared_since(std::size_t place, std::size_t launch) const;

  struct Graph;

  const clang::FunctionDecl* entry_ = nullptr;
  std::vector<Launch> launches_;
  std::vector<std::size_t> statements_; // per launch, its index in the entry's body
  std::vector<Uses> uses_;
  std::shared_ptr<const Graph> graph_;
};

/// The parameter of a launch's kernel that points to `base`; nullptr unless it is the only one and
/// points to its first element.
const clang::ParmVarDecl* parameter_for(const DependenceGraph& graph, const Launch& launch,
                                        const clang::VarDecl* base);

/// The parameter of a launch's kernel that gets `argument`, of the same type as `wanted` and never
/// changed; nullptr if there is none.
const clang::ParmVarDecl* parameter_given(const Kernel& kernel, const Launch& launch,
                                          const clang::Expr* argument,
                                          const clang::ParmVarDecl& wanted);

} // namespace evo
