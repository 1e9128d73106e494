// Loads the fragments of the next step into registers while those of this one are multiplied: a
// double buffer of registers inside a tile.
//
//   before                                  after "gemm/k prefetch fragments"
//   for (int k = 0; k < K; ++k) {           float w_fragment[2][M];
//     float w_fragment[M];                  for (int i = 0; i < M; ++i)
//     for (int i = 0; i < M; ++i)             w_fragment[0][i] = w[row + i][0];
//       w_fragment[i] = w[row + i][k];      #pragma unroll
//     for (int i = 0; i < M; ++i)           for (int k = 0; k < K; ++k) {
//       for (int j = 0; j < N; ++j)           const int k_next = k + 1;
//         sum[i][j] += w_fragment[i] * ...    if (k_next < K) {
//   }                                           for (int i = 0; i < M; ++i)
//                                                 w_fragment[k_next % 2][i] = w[row + i][k_next];
//                                             }
//                                             for (int i = 0; i < M; ++i)
//                                               for (int j = 0; j < N; ++j)
//                                                 sum[i][j] += w_fragment[k % 2][i] * ...
//                                           }
//
// Precondition: a loop from 0 with a constant number of steps, two at least, which writes registers
// only and updates some from outside. A fragment is a variable of its body that nothing fills but
// statements which read shared memory at indices made of the counter and of what stays the same in
// the loop, by ldmatrix too. The loop can be unrolled in full, since only then is every half a
// register. Values and the order of operations stay, so results keep every bit; both files compute
// the same (analysis/meaning.hpp).
//
// Expected gain: shared memory's latency hides behind a step's products; it costs as many registers
// again as the fragments take, and nothing where the compiler moves the loads up by itself.
#include <algorithm>
#include <map>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/loop_nest.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/meaning.hpp"
#include "mutators/analysis/path_dims.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/edited.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// A statement of the loop's body.
struct StepPart {
  const clang::Stmt* statement = nullptr;
  Accesses accesses;

  bool writes(const clang::VarDecl* variable) const {
    return std::ranges::any_of(accesses.list, [&](const MemoryAccess& access) {
      return access.writes && access.memory.variable == variable;
    });
  }
  bool reads(Space space) const {
    return std::ranges::any_of(accesses.list, [&](const MemoryAccess& access) {
      return access.reads && access.memory.space == space;
    });
  }
};

/// The local variable that a statement declares by itself.
const clang::VarDecl* declared_alone(const clang::Stmt* statement) {
  const auto* definition = dyn_cast<clang::DeclStmt>(statement);
  const auto* variable = definition != nullptr && definition->isSingleDecl()
                             ? dyn_cast<clang::VarDecl>(definition->getSingleDecl())
                             : nullptr;
  return variable != nullptr && variable->hasLocalStorage() &&
                 !variable->getType()->isReferenceType() && !variable->getType()->isPointerType()
             ? variable
             : nullptr;
}

/// What one loop loads for each of its steps, and what it does with it.
class Steps {
public:
  explicit Steps(const CountedLoop& loop) : loop_(loop) {
    if (const auto* braces = dyn_cast<clang::CompoundStmt>(loop.loop->getBody())) {
      for (const clang::Stmt* statement : braces->body()) {
        parts_.push_back({statement, accesses_of(*statement)});
      }
    }
  }

  /// Whether there are fragments to load ahead.
  bool find_fragments() {
    if (!std::ranges::all_of(parts_, stays_in_registers)) {
      return false;
    }
    for (const StepPart& part : parts_) {
      if (const clang::VarDecl* variable = declared_alone(part.statement);
          variable != nullptr && is_local_array_or_load(part, *variable)) {
        fragments_.push_back(variable);
      }
    }
    while (std::erase_if(fragments_, [&](const auto* fragment) { return !is_loaded(*fragment); })) {
    }
    return !fragments_.empty() && updates_something();
  }

  const std::vector<const clang::VarDecl*>& fragments() const { return fragments_; }

  /// Those that fill fragments, or what only declares one, in source order; and the others.
  std::vector<const clang::Stmt*> loads() const { return statements(true); }
  std::vector<const clang::Stmt*> others() const { return statements(false); }

private:
  static bool stays_in_registers(const StepPart& part) {
    return part.accesses.opaque == nullptr && part.accesses.barriers.empty() &&
           std::ranges::all_of(part.accesses.list, [](const MemoryAccess& access) {
             return access.memory.space != Space::Unknown &&
                    (!access.writes || access.memory.space == Space::Register);
           });
  }

  /// Only what is not initialised can be declared elsewhere and filled in here.
  static bool is_local_array_or_load(const StepPart& part, const clang::VarDecl& variable) {
    return part.writes(&variable) ? !variable.getType()->isArrayType() && part.reads(Space::Shared)
                                  : variable.getType()->isArrayType();
  }

  static bool is_own(const StepPart& part, const clang::VarDecl* variable) {
    const clang::SourceRange range = part.statement->getSourceRange();
    return range.getBegin() <= variable->getLocation() && variable->getLocation() <= range.getEnd();
  }

  bool is_fragment(const clang::VarDecl* variable) const {
    return std::ranges::find(fragments_, variable) != fragments_.end();
  }

  bool changes(const clang::VarDecl* variable) const {
    return std::ranges::any_of(parts_, [&](const StepPart& part) { return part.writes(variable); });
  }

  /// Whether a statement may run a step ahead: it fills fragments and leaves nothing else behind.
  bool is_load(const StepPart& part) const {
    return std::ranges::all_of(part.accesses.list, [&](const MemoryAccess& access) {
      const clang::VarDecl* variable = access.memory.variable;
      return access.memory.space != Space::Register
                 ? access.memory.space == Space::Shared
                 : is_fragment(variable) || is_own(part, variable) ||
                       (!access.writes && !changes(variable));
    });
  }

  bool is_loaded(const clang::VarDecl& fragment) const {
    bool reads_other_elements = false;
    for (const StepPart& part : parts_) {
      if (part.writes(&fragment)) {
        if (!is_load(part)) {
          return false;
        }
        reads_other_elements = reads_other_elements || (part.reads(Space::Shared) &&
                                                        mentions(*part.statement, *loop_.counter));
      }
    }
    return reads_other_elements;
  }

  bool fills_fragments(const StepPart& part) const {
    return std::ranges::any_of(
        fragments_, [&](const clang::VarDecl* fragment) { return part.writes(fragment); });
  }

  /// A variable from outside the loop, by what is no load.
  bool updates_something() const {
    return std::ranges::any_of(parts_, [&](const StepPart& part) {
      return !fills_fragments(part) &&
             std::ranges::any_of(part.accesses.list, [&](const MemoryAccess& access) {
               const clang::VarDecl* variable = access.memory.variable;
               return access.writes && !is_defined_inside(variable) &&
                      std::ranges::any_of(part.accesses.list, [&](const MemoryAccess& other) {
                        return other.reads && other.memory.variable == variable;
                      });
             });
    });
  }

  bool is_defined_inside(const clang::VarDecl* variable) const {
    return std::ranges::any_of(parts_,
                               [&](const StepPart& part) { return is_own(part, variable); });
  }

  std::vector<const clang::Stmt*> statements(bool loads) const {
    std::vector<const clang::Stmt*> result;
    for (const StepPart& part : parts_) {
      const bool loading = fills_fragments(part) || is_fragment(declared_alone(part.statement));
      if (loading == loads) {
        result.push_back(part.statement);
      }
    }
    return result;
  }

  const CountedLoop& loop_;
  std::vector<StepPart> parts_;
  std::vector<const clang::VarDecl*> fragments_;
};

/// One loop's rewrite. All of it throws CannotWrite where something cannot be written.
class Prefetching {
public:
  Prefetching(const Kernel& kernel, const DeviceLoop& loop, const Steps& steps)
      : kernel_(kernel), loop_(loop), steps_(steps), names_(kernel),
        next_(names_.fresh(loop.counted.counter->getNameAsString() + "_next")) {
    for (const clang::VarDecl* fragment : steps.fragments()) {
      const std::string name = fragment->getNameAsString();
      name_[fragment] = is_taken(name) ? names_.fresh(name) : name;
    }
  }

  std::vector<Edit> edits() {
    const Span body = checked(span_of(kernel_, loop_.counted.loop->getBody()->getSourceRange()));
    std::vector<Edit> result{before_loop(), {body.begin + 1, 0, next_loads()}};
    for (const clang::Stmt* load : steps_.loads()) {
      const Span lines = whole_lines(whole(load));
      result.push_back({lines.begin, lines.length(), ""});
    }
    for (const clang::Stmt* user : steps_.others()) {
      std::ranges::move(on_half(whole(user), loop_.counted.counter->getNameAsString()),
                        std::back_inserter(result));
    }
    sort_edits(result);
    return result;
  }

private:
  /// Whether the braces around the loop declare that name.
  bool is_taken(const std::string& name) const {
    const clang::Stmt* around = parent_of(kernel_, *loop_.counted.loop);
    if (around != nullptr && clang::isa<clang::AttributedStmt>(around)) {
      around = parent_of(kernel_, *around);
    }
    const auto* braces = clang::dyn_cast_or_null<clang::CompoundStmt>(around);
    return std::ranges::any_of(present(braces).body(), [&](const clang::Stmt* statement) {
      const auto* definition = dyn_cast<clang::DeclStmt>(statement);
      return definition != nullptr &&
             std::ranges::any_of(definition->decls(), [&](const clang::Decl* decl) {
               const auto* named = dyn_cast<clang::NamedDecl>(decl);
               return named != nullptr && named->getNameAsString() == name;
             });
    });
  }

  std::string text(const clang::Expr& expr, Binding binding) const {
    const auto found = operand(kernel_, expr, binding);
    return found ? *found : throw CannotWrite{};
  }

  /// With its pragmas.
  Span whole(const clang::Stmt* statement) const {
    const auto begin = begin_of(kernel_, *statement);
    const Span bare = checked(span_of(kernel_, *without_pragmas(statement)));
    return {begin ? *begin : throw CannotWrite{}, bare.end};
  }

  /// With the rest of its last line, where that is blank.
  Span whole_lines(Span span) const {
    const std::size_t next = kernel_.source().find_first_not_of(" \t", span.end);
    const bool blank = next != std::string::npos && kernel_.source()[next] == '\n';
    return {span.begin, blank ? static_cast<unsigned>(next) + 1 : span.end};
  }

  /// The half that holds what a step loads: that of the one after it is the other.
  std::string half(const std::string& counter) const {
    const std::string step =
        loop_.counted.step_value == 1 ? "" : " / " + text(*loop_.counted.step, Binding::Operand);
    return counter == "0" ? "0" : counter + step + " % 2";
  }

  /// Fragments in a step's half.
  std::vector<Edit> on_half(Span where, const std::string& counter) const {
    std::vector<Edit> result;
    for (const auto& [fragment, name] : name_) {
      for (const Span& use : uses(*fragment)) {
        if (where.contains(use.begin)) {
          result.push_back({use.begin, use.length(), name + "[" + half(counter) + "]"});
        }
      }
    }
    return result;
  }

  std::vector<Span> uses(const clang::VarDecl& variable) const {
    const auto found = references(kernel_, variable);
    return found ? *found : throw CannotWrite{};
  }

  /// What loads a step's fragments.
  std::string loads(const std::string& counter) const {
    std::string result;
    for (const clang::Stmt* load : steps_.loads()) {
      const Span span = whole(load);
      std::vector<Edit> edits = on_half(span, counter);
      for (const Span& use : uses(*loop_.counted.counter)) {
        edits.push_back({use.begin, use.length(), counter});
      }
      const clang::VarDecl* declared = declared_alone(load);
      if (declared == nullptr) {
        result += render(kernel_, span, edits) + "\n";
      } else if (declared->hasInit()) {
        const Span value = checked(span_of(kernel_, declared->getInit()->getSourceRange()));
        result += name_.at(declared) + "[" + half(counter) +
                  "] = " + render(kernel_, value, edits) + ";\n";
      }
    }
    return result;
  }

  /// Two halves of each fragment.
  std::string definitions() const {
    std::string result;
    for (const clang::Stmt* load : steps_.loads()) {
      const clang::VarDecl* declared = declared_alone(load);
      if (declared == nullptr) {
        continue;
      }
      const std::string name = name_.at(declared) + "[2]";
      if (declared->hasInit()) {
        result += declared->getType().getUnqualifiedType().getAsString() + " " + name + ";\n";
      } else {
        const Span place = checked(span_of(kernel_, clang::SourceRange(declared->getLocation())));
        result += render(kernel_, whole(load), {{place.begin, place.length(), name}}) + "\n";
      }
    }
    return result;
  }

  /// The first step's loads, with the loop's own pragma replaced.
  Edit before_loop() const {
    const auto begin = begin_of(kernel_, loop_);
    const Span loop = checked(span_of(kernel_, *loop_.counted.loop));
    if (!begin) {
      throw CannotWrite{};
    }
    return {*begin, loop.begin - *begin, definitions() + loads("0") + "#pragma unroll\n"};
  }

  std::string next_loads() const {
    const CountedLoop& loop = loop_.counted;
    const std::string type = loop.counter->getType().getUnqualifiedType().getAsString();
    const std::string step = loop.step == nullptr ? "1" : text(*loop.step, Binding::Sum);
    return "\nconst " + type + " " + next_ + " = " + loop.counter->getNameAsString() + " + " +
           step + ";\nif (" + next_ + " < " + text(*loop.limit, Binding::Sum) + ") {\n" +
           loads(next_) + "}";
  }

  const Kernel& kernel_;
  const DeviceLoop& loop_;
  const Steps& steps_;
  Names names_;
  std::string next_;
  std::map<const clang::VarDecl*, std::string> name_;
};

class PrefetchFragments : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "prefetch_fragments",
        .summary = "loads the next step's fragments while multiplying this one's: hides shared "
                   "memory's latency for twice their registers",
        .before = "for (k) { fragment = tile[k]; sum += fragment * ...; }",
        .after = "fragment[0] = tile[0];\n"
                 "for (k) { fragment[(k + 1) % 2] = tile[k + 1]; sum += fragment[k % 2] * ...; }",
    };
    return about;
  }

  /// Loops of one kernel are proved together where that is possible.
  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const std::vector<DeviceLoop> loops = device_loops(kernel);
    for (const DeviceLoop& loop : loops) {
      if (auto edits = can_unroll(kernel, loop, loops) ? prefetched(kernel, loop) : std::nullopt) {
        result.push_back({loop.name + " prefetch fragments", std::move(*edits)});
      }
    }
    std::vector<Edit> together;
    for (const Rewrite& rewrite : result) {
      std::ranges::copy(rewrite.edits, std::back_inserter(together));
    }
    sort_edits(together);
    if (!are_disjoint(together) || !means_the_same(kernel, together)) {
      std::erase_if(result,
                    [&](const Rewrite& rewrite) { return !means_the_same(kernel, rewrite.edits); });
    }
    return result;
  }

private:
  static bool can_unroll(const Kernel& kernel, const DeviceLoop& loop,
                         const std::vector<DeviceLoop>& loops) {
    const std::int64_t steps = trip_count(kernel, loop.counted).value_or(0);
    return constant_value(kernel, *loop.counted.start) == 0 && steps > 1 &&
           loop.attributes.size() <= 1 && steps * inner_copies(kernel, loop, loops) <= max_copies;
  }

  static std::optional<std::vector<Edit>> prefetched(const Kernel& kernel, const DeviceLoop& loop) {
    Steps steps(loop.counted);
    if (!steps.find_fragments()) {
      return std::nullopt;
    }
    try {
      return Prefetching(kernel, loop, steps).edits();
    } catch (const CannotWrite&) {
      return std::nullopt;
    }
  }

  /// Those of a loop inside another may overlap.
  static bool are_disjoint(const std::vector<Edit>& edits) {
    return std::ranges::adjacent_find(edits, [](const Edit& first, const Edit& second) {
             return first.offset + first.length > second.offset;
           }) == edits.end();
  }

  static bool means_the_same(const Kernel& kernel, const std::vector<Edit>& edits) {
    const auto after = edits.empty() ? std::nullopt : edited(kernel, edits);
    return after && same_meaning(kernel, *after, dims_of_all_paths(*after));
  }
};

} // namespace

const Mutator& prefetch_fragments() {
  static const PrefetchFragments mutator;
  return mutator;
}

} // namespace evo
