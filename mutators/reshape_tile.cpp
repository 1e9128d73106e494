// Reshapes a tile: halves or doubles a block, thread or k tile, or some of them together, by the
// constants that say so, and gives a pipeline of copies 2 to 5 stages by its. The launch, the
// shared arrays and the derived constants follow, because they are written in terms of these
// constants.
//
//   before                              after "gemm/block_m 128, thread_m 8"
//   constexpr int block_m = 64;         constexpr int block_m = 128;
//   constexpr int thread_m = 4;         constexpr int thread_m = 8;
//   constexpr int threads =             constexpr int threads =
//       block_m / thread_m * 16;            block_m / thread_m * 16;
//
// Precondition, all of it decided by evaluation under the new values (nothing by name):
// - the constant is free and shapes a launch: its grid, its block, or the extent of an array that
//   its threads share or hold; a constant that the entry insists on launches nothing when changed;
// - every static_assert holds, and divisions between constants stay without remainder;
// - the block has a multiple of 32 threads within the target's limit, and shared memory, static
//   and dynamic, within the target's and the launch's limit; the arrays that a thread holds leave
//   registers free;
// - every launch whose kernel uses a changed constant still touches the same elements of every
//   buffer, each output once, with no index outside its array and no shared element read before
//   the block has written it, in all blocks or the first and last ones of a small problem; only of
//   the workspace it may touch others (a padded copy of a matrix), if then the file still computes
//   the same polynomials of its inputs (analysis/meaning.hpp).
//
// Expected gain: a larger block tile rereads its inputs less often, a larger thread tile does more
// arithmetic per shared-memory load, a larger k tile meets fewer barriers; smaller ones fit more
// blocks on a multiprocessor. Constants change together where one alone would pass through a thread
// count that nobody wants: block_m and thread_m, block_m against block_n, or a block with its
// thread tile along both sides.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/async_copies.hpp"
#include "mutators/analysis/constants.hpp"
#include "mutators/analysis/footprint.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/meaning.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/analysis/warp_products.hpp"
#include "mutators/edited.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/target.hpp"

namespace evo {
namespace {

constexpr std::int64_t static_shared_limit = 48 * 1024;
constexpr std::int64_t working_registers = 32; // addresses, counters and fragments
constexpr std::array<std::int64_t, 5> k_tiles{4, 8, 16, 32, 64};
constexpr std::array<std::int64_t, 4> stage_choices{2, 3, 4, 5};
constexpr std::int64_t large_size = 1027;
constexpr std::array<std::int64_t, 5> partial_sizes{67, 131, 259, 515, large_size};

using Launches = std::vector<EvaluatedLaunch>;

/// What the body of a kernel and everything it calls and lays out mentions.
class KernelMentions : public SyntaxVisitor {
public:
  bool VisitDeclRefExpr(clang::DeclRefExpr* reference) override {
    if (const auto* variable = clang::dyn_cast<clang::VarDecl>(reference->getDecl())) {
      if (variables.insert(variable).second && variable->isConstexpr() && variable->hasInit()) {
        TraverseStmt(const_cast<clang::Expr*>(variable->getInit()));
      }
    } else if (const auto* function = clang::dyn_cast<clang::FunctionDecl>(reference->getDecl())) {
      enter(function->getDefinition());
    }
    return true;
  }
  bool VisitCXXMethodDecl(clang::CXXMethodDecl* method) override {
    enter(method->getDefinition());
    return true;
  }
  bool VisitRecordTypeLoc(clang::RecordTypeLoc type) override {
    if (type.getDecl()->isCompleteDefinition() && seen_.insert(type.getDecl()).second) {
      TraverseDecl(type.getDecl());
    }
    return true;
  }
  bool VisitVarDecl(clang::VarDecl* variable) override {
    if (!variable->isFileVarDecl()) {
      locals.push_back(variable);
    }
    return true;
  }
  bool VisitCallExpr(clang::CallExpr* call) override {
    if (wait_for_copies(call) != nullptr) {
      KernelMentions groups;
      groups.TraverseStmt(call->getArg(0));
      waited_for.merge(groups.variables);
    }
    counts_parts.insert(count_of_parts(*call));
    return true;
  }
  void enter(const clang::FunctionDecl* function) {
    if (function != nullptr && function->hasBody() && seen_.insert(function).second) {
      TraverseStmt(function->getBody());
    }
  }

  std::set<const clang::VarDecl*> variables;
  std::set<const clang::VarDecl*> waited_for;   // in __pipeline_wait_prior(stages - 2)
  std::set<const clang::VarDecl*> counts_parts; // of floats on tensor cores, and nullptr
  std::vector<const clang::VarDecl*> locals;

private:
  std::set<const clang::Decl*> seen_;
};

/// A free constant that shapes a launch, and how.
struct Tile {
  Constant constant;
  std::string kernel; // the first whose blocks it shapes, or else the first that uses it
  bool shapes_grid = false;
  bool shapes_block = false;
  bool shapes_shared = false;
  bool shapes_held = false;
  bool counts_stages = false;

  bool shapes_blocks() const { return shapes_block || shapes_shared || shapes_held; }
  bool is_k_tile() const { return !shapes_grid && !shapes_block && shapes_shared; }
};

class Reshaper {
public:
  explicit Reshaper(const Kernel& kernel)
      : kernel_(kernel), constants_(find_constants(kernel)), rules_(find_rules(kernel)),
        dims_(find_dims(kernel)), workspace_(workspace_buffers(kernel)) {
    for (const Launch& launch : find_launches(kernel)) {
      if (!mentions_.contains(launch.kernel)) {
        mentions_[launch.kernel].enter(launch.kernel);
      }
    }
  }

  std::vector<Rewrite> rewrites() {
    const auto tiles = dims_ ? find_tiles() : std::vector<Tile>{};
    std::vector<Rewrite> result;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      for (const std::int64_t value : values_of(tiles[i])) {
        propose({{&tiles[i], value}}, result);
      }
      for (std::size_t j = i + 1; j < tiles.size(); ++j) {
        propose_pairs(tiles[i], tiles[j], result);
      }
    }
    propose_both_sides(result);
    return result;
  }

private:
  using Choice = std::vector<std::pair<const Tile*, std::int64_t>>;

  static std::vector<std::int64_t> values_of(const Tile& tile) {
    const std::int64_t now = tile.constant.value;
    if (!tile.is_k_tile()) {
      return now % 2 == 0 ? std::vector{now / 2, now * 2} : std::vector{now * 2};
    }
    std::vector<std::int64_t> values(k_tiles.begin(), k_tiles.end());
    if (tile.counts_stages) {
      values.assign(stage_choices.begin(), stage_choices.end());
    }
    std::erase(values, now);
    return values;
  }

  std::vector<Tile> find_tiles() {
    std::vector<Tile> tiles;
    for (const Constant& constant : constants_) {
      if (constant.free && constant.value > 0 && !counts_parts(constant)) {
        if (auto tile = as_tile(constant)) {
          tiles.push_back(std::move(*tile));
        }
      }
    }
    return tiles;
  }

  /// Whether it says how exact products are, and not how large a tile is.
  bool counts_parts(const Constant& constant) const {
    return std::ranges::any_of(mentions_, [&](const auto& kernel) {
      return kernel.second.counts_parts.contains(constant.declaration);
    });
  }

  /// Doubled, does it change a launch or an array of the launched kernel?
  std::optional<Tile> as_tile(const Constant& constant) {
    const Assignment doubled{{constant.declaration, 2 * constant.value}};
    const auto before = launches(large_size, {});
    const auto after = launches(large_size, doubled);
    if (!before || !after || before->size() != after->size()) {
      return std::nullopt;
    }
    std::optional<Tile> found;
    for (std::size_t i = 0; i < before->size(); ++i) {
      if (!depends((*before)[i], (*after)[i], doubled)) {
        continue;
      }
      const auto tile = shape(constant, (*before)[i], (*after)[i], doubled);
      if (!tile) {
        return std::nullopt;
      }
      if (!found || (!found->shapes_blocks() && tile->shapes_blocks())) {
        found = tile;
      }
    }
    const bool shapes = found && (found->shapes_grid || found->shapes_block || found->shapes_held ||
                                  (found->shapes_shared && fills_more_shared(doubled)));
    return shapes ? found : std::nullopt;
  }

  /// How it shapes one launch; nullopt where an array of the kernel has no size.
  std::optional<Tile> shape(const Constant& constant, const EvaluatedLaunch& before,
                            const EvaluatedLaunch& after, const Assignment& doubled) {
    const auto old_words = array_words(before, {});
    const auto now_words = array_words(after, doubled);
    if (!old_words || !now_words) {
      return std::nullopt;
    }
    const clang::FunctionDecl* kernel = before.launch.kernel;
    return Tile{.constant = constant,
                .kernel = kernel->getNameAsString(),
                .shapes_grid = before.grid != after.grid,
                .shapes_block = before.block != after.block,
                .shapes_shared = before.shared_bytes != after.shared_bytes ||
                                 old_words->shared != now_words->shared,
                .shapes_held = old_words->held != now_words->held,
                .counts_stages = mentions_.at(kernel).waited_for.contains(constant.declaration)};
  }

  /// Whether a block of some launch writes another number of shared elements under these values; a
  /// padding changes only where they lie.
  bool fills_more_shared(const Assignment& values) {
    const auto filled = [&](const Assignment& assignment) {
      std::vector<std::int64_t> elements;
      Evaluator evaluator(kernel_, assignment);
      for (const EvaluatedLaunch& launch :
           launches(partial_sizes.front(), assignment).value_or(Launches{})) {
        const auto use = footprint(evaluator, launch, {{0, 0, 0}});
        const auto* found = std::get_if<Footprint>(&use);
        elements.push_back(found != nullptr ? found->shared_elements_written : -1);
      }
      return elements;
    };
    return filled({}) != filled(values);
  }

  void propose_pairs(const Tile& a, const Tile& b, std::vector<Rewrite>& result) {
    if (a.is_k_tile() || b.is_k_tile() || a.kernel != b.kernel) {
      return;
    }
    const bool alike = a.shapes_grid == b.shapes_grid;
    for (const std::int64_t first : values_of(a)) {
      for (const std::int64_t second : values_of(b)) {
        const bool same_way = (first > a.constant.value) == (second > b.constant.value);
        const Choice choice{{&a, first}, {&b, second}};
        const bool together =
            alike ? same_way || keeps_threads(choice) : divides(a, b) && keeps_threads(choice);
        if (together) {
          propose(choice, result);
        }
        if (together && !alike) {
          sides_.push_back(choice);
        }
      }
    }
  }

  /// A block tile with its thread tile, along both sides of the matrix at once: the step to a
  /// larger or smaller tile of the same shape.
  void propose_both_sides(std::vector<Rewrite>& result) {
    const auto grows = [](const Choice& side) {
      return side.front().second > side.front().first->constant.value;
    };
    const auto shares = [](const Choice& one, const Choice& other) {
      return std::ranges::find_first_of(one, other, {}, &Choice::value_type::first,
                                        &Choice::value_type::first) != one.end();
    };
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      for (std::size_t j = i + 1; j < sides_.size(); ++j) {
        if (grows(sides_[i]) == grows(sides_[j]) && !shares(sides_[i], sides_[j]) &&
            sides_[i].front().first->kernel == sides_[j].front().first->kernel) {
          Choice both = sides_[i];
          both.insert(both.end(), sides_[j].begin(), sides_[j].end());
          propose(both, result);
        }
      }
    }
  }

  /// Whether the file divides one by the other: a block tile by its thread tile.
  bool divides(const Tile& a, const Tile& b) {
    const auto mentions = [](const clang::Expr* expression, const Tile& tile) {
      KernelMentions found;
      found.TraverseStmt(const_cast<clang::Expr*>(expression));
      return found.variables.contains(tile.constant.declaration);
    };
    return std::ranges::any_of(rules_.exact_divisions, [&](const auto& division) {
      const auto& [dividend, divisor] = division;
      return (mentions(dividend, a) && mentions(divisor, b)) ||
             (mentions(dividend, b) && mentions(divisor, a));
    });
  }

  static Assignment assignment(const Choice& choice) {
    Assignment values;
    for (const auto& [tile, value] : choice) {
      values[tile->constant.declaration] = value;
    }
    return values;
  }

  bool keeps_threads(const Choice& choice) {
    const auto before = launches(large_size, {});
    const auto after = launches(large_size, assignment(choice));
    return before && after &&
           std::ranges::equal(*before, *after, {}, &EvaluatedLaunch::block,
                              &EvaluatedLaunch::block);
  }

  /// Unless other pairs have come to the same values.
  void propose(const Choice& choice, std::vector<Rewrite>& result) {
    if (!tried_.insert(assignment(choice)).second) {
      return;
    }
    const std::optional<Effect> effect = this->effect(assignment(choice));
    if (!effect) {
      return;
    }
    Rewrite rewrite{.label = choice.front().first->kernel + "/", .edits = {}};
    for (const auto& [tile, value] : choice) {
      const auto edit = set_constant(kernel_, tile->constant, value);
      if (!edit) {
        return;
      }
      rewrite.label += (rewrite.edits.empty() ? "" : ", ") + tile->constant.name + " ";
      rewrite.label += std::to_string(value);
      rewrite.edits.push_back(*edit);
    }
    sort_edits(rewrite.edits);
    if (*effect == Effect::None || keeps_meaning(rewrite.edits)) {
      result.push_back(std::move(rewrite));
    }
  }

  /// What launches do to memory that they did not do before.
  enum class Effect { None, OtherWorkspace };

  /// nullopt where the values break a rule or a limit, or do more than that to memory.
  std::optional<Effect> effect(const Assignment& values) {
    Evaluator evaluator(kernel_, values);
    const auto size = check_rules(rules_, evaluator) ? std::nullopt : trial_size(values);
    if (!size) {
      return std::nullopt;
    }
    const Launches before = *launches(*size, {});
    const Launches after = *launches(*size, values);
    Effect result = Effect::None;
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (!depends(before[i], after[i], values)) {
        continue;
      }
      const auto one =
          fits(after[i], values) ? effect(i, *size, before[i], after[i], values) : std::nullopt;
      if (!one) {
        return std::nullopt;
      }
      result = std::max(result, *one);
    }
    return result;
  }

  /// Whether the file still computes the same polynomials, at the odd one of its telling sizes.
  bool keeps_meaning(const std::vector<Edit>& edits) {
    const auto after = edited(kernel_, edits);
    const auto dims = after ? telling_dims(*after) : std::vector<std::vector<std::int64_t>>{};
    return !dims.empty() && same_meaning(kernel_, *after, {dims.front()});
  }

  /// What is launched at a size, in the parent and with a change.
  struct Effects {
    Launches before;
    Launches after;
  };

  /// nullopt where the change makes other launches.
  std::optional<Effects> effects(std::int64_t size, const Assignment& values) {
    const auto before = launches(size, {});
    const auto after = launches(size, values);
    return before && after && same_kernels(*before, *after)
               ? std::optional(Effects{*before, *after})
               : std::nullopt;
  }

  /// The smallest size at which every kernel is launched that a large problem needs, and, before
  /// and after, every part of a changed launch's grid that depends on the size has two blocks or
  /// more, the last one partly outside.
  std::optional<std::int64_t> trial_size(const Assignment& values) {
    const auto large = effects(large_size, values);
    if (!large) {
      return std::nullopt;
    }
    for (const std::int64_t size : partial_sizes) {
      if (size == large_size) { // tries take tens of seconds there
        break;
      }
      const auto small = effects(size, values);
      if (small && launches_all_of(*large, *small) &&
          is_split(*small, largest_alike(*small, values), values)) {
        return size;
      }
    }
    return std::nullopt;
  }

  static bool launches_all_of(const Effects& large, const Effects& small) {
    return std::ranges::all_of(large.before, [&](const EvaluatedLaunch& launch) {
      return std::ranges::find(small.before, kernel_of(launch), kernel_of) != small.before.end();
    });
  }

  /// At the largest size with these launches: a tail may be launched at some sizes only.
  Effects largest_alike(const Effects& small, const Assignment& values) {
    Effects largest = small;
    for (const std::int64_t size : partial_sizes) {
      const auto other = effects(size, values);
      if (other && same_kernels(other->before, small.before)) {
        largest = *other;
      }
    }
    return largest;
  }

  bool is_split(const Effects& small, const Effects& large, const Assignment& values) {
    const auto splits = [](const Extent3& most, const Extent3& few) {
      return (few.x > 1 || most.x == 1) && (few.y > 1 || most.y == 1) && (few.z > 1 || most.z == 1);
    };
    for (std::size_t i = 0; i < small.before.size(); ++i) {
      if (depends(large.before[i], large.after[i], values) &&
          !(splits(large.before[i].grid, small.before[i].grid) &&
            splits(large.after[i].grid, small.after[i].grid))) {
        return false;
      }
    }
    return true;
  }

  static bool same_kernels(const Launches& one, const Launches& other) {
    return std::ranges::equal(one, other, {}, kernel_of, kernel_of);
  }

  static const clang::FunctionDecl* kernel_of(const EvaluatedLaunch& launch) {
    return launch.launch.kernel;
  }

  /// Whether the change reaches this launch at all.
  bool depends(const EvaluatedLaunch& before, const EvaluatedLaunch& after,
               const Assignment& values) {
    if (before.grid != after.grid || before.block != after.block ||
        before.shared_bytes != after.shared_bytes || before.arguments != after.arguments) {
      return true;
    }
    const auto& variables = mentions_.at(before.launch.kernel).variables;
    return std::ranges::any_of(
        values, [&](const auto& change) { return variables.contains(change.first); });
  }

  bool fits(const EvaluatedLaunch& launch, const Assignment& values) {
    const Target& target = kernel_.target();
    const std::int64_t threads = launch.block.count();
    const auto words = array_words(launch, values);
    return threads % warp_size == 0 && threads <= target.threads_per_block && words &&
           words->shared * 4 <= static_shared_limit && launch.shared_bytes <= launch.shared_limit &&
           words->shared * 4 + launch.shared_bytes <= target.shared_bytes_per_block &&
           words->held + working_registers <= target.registers_per_thread;
  }

  struct ArrayWords {
    std::int64_t shared = 0; // static shared memory of a block
    std::int64_t held = 0;   // a thread's own arrays
  };

  /// Sizes of the arrays that the kernel declares; nullopt where one has none.
  std::optional<ArrayWords> array_words(const EvaluatedLaunch& launch, const Assignment& values) {
    Evaluator evaluator(kernel_, values);
    ArrayWords words;
    for (const clang::VarDecl* local : mentions_.at(launch.launch.kernel).locals) {
      const bool shared = local->hasAttr<clang::CUDASharedAttr>();
      const bool array = local->getType()->isArrayType() || local->getType()->isRecordType();
      if ((!shared && !array) || local->hasExternalStorage()) {
        continue;
      }
      const auto bytes = evaluator.size_of(*local);
      if (std::holds_alternative<Failure>(bytes)) {
        return std::nullopt;
      }
      (shared ? words.shared : words.held) += (std::get<std::int64_t>(bytes) + 3) / 4;
    }
    return words;
  }

  std::optional<Effect> effect(std::size_t index, std::int64_t size, const EvaluatedLaunch& before,
                               const EvaluatedLaunch& after, const Assignment& values) {
    const bool samples = !deals_blocks_out(*before.launch.kernel);
    const auto indices = [&](int Extent3::* part) {
      return samples ? sampled(before.grid.*part, after.grid.*part) : std::nullopt;
    };
    const auto x = indices(&Extent3::x);
    const auto y = indices(&Extent3::y);
    const auto z = indices(&Extent3::z);
    const auto blocks = [&](const Extent3& grid) {
      std::vector<Extent3> result;
      for (const int k : z ? *z : all(grid.z)) {
        for (const int j : y ? *y : all(grid.y)) {
          for (const int i : x ? *x : all(grid.x)) {
            result.push_back({i, j, k});
          }
        }
      }
      return result;
    };
    const auto key = std::tuple(index, size, x.has_value(), y.has_value(), z.has_value());
    auto known = before_.find(key);
    if (known == before_.end()) {
      Evaluator evaluator(kernel_);
      known = before_.emplace(key, footprint(evaluator, before, blocks(before.grid))).first;
    }
    const auto* old = std::get_if<Footprint>(&known->second);
    if (old == nullptr) {
      return std::nullopt;
    }
    Evaluator evaluator(kernel_, values);
    const auto now = footprint(evaluator, after, blocks(after.grid));
    const auto* found = std::get_if<Footprint>(&now);
    if (found == nullptr || !same_use(*old, *found, workspace_)) {
      return std::nullopt;
    }
    return same_use(*old, *found) ? Effect::None : Effect::OtherWorkspace;
  }

  /// Whether a kernel asks for gridDim: then no index of a block stands for a row or a column.
  bool deals_blocks_out(const clang::FunctionDecl& function) const {
    return std::ranges::any_of(
        mentions_.at(&function).variables,
        [](const clang::VarDecl* variable) { return variable->getName() == "gridDim"; });
  }

  static std::vector<int> all(int extent) {
    std::vector<int> indices;
    for (int i = 0; i < extent; ++i) {
      indices.push_back(i);
    }
    return indices;
  }

  /// Where the change leaves a part of the grid alone, its first and its last index stand for the
  /// rest; elsewhere all count, for the sums over all blocks are compared.
  static std::optional<std::vector<int>> sampled(int before, int after) {
    return before == after && before > 2 ? std::optional(std::vector{0, before - 1}) : std::nullopt;
  }

  std::optional<Launches> launches(std::int64_t size, const Assignment& values) {
    const auto key = std::pair(size, values);
    auto known = launches_.find(key);
    if (known == launches_.end()) {
      auto result = evaluate_launches(kernel_, dims_->at(size), values);
      const auto* list = std::get_if<Launches>(&result);
      known = launches_.emplace(key, list != nullptr ? std::optional(*list) : std::nullopt).first;
    }
    return known->second;
  }

  const Kernel& kernel_;
  std::vector<Constant> constants_;
  ConstantRules rules_;
  std::optional<EntryDims> dims_;
  std::set<int> workspace_;
  std::map<const clang::FunctionDecl*, KernelMentions> mentions_;
  std::vector<Choice> sides_; // block tiles with their thread tiles
  std::set<Assignment> tried_;
  std::map<std::pair<std::int64_t, Assignment>, std::optional<Launches>> launches_;
  std::map<std::tuple<std::size_t, std::int64_t, bool, bool, bool>,
           std::variant<Footprint, Failure>>
      before_;
};

class ReshapeTile : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "reshape_tile",
        .summary = "halves or doubles block, thread and k tiles by their constants: less traffic, "
                   "or more blocks in flight",
        .before = "constexpr int block_m = 64;\nconstexpr int thread_m = 4;",
        .after = "constexpr int block_m = 128;\nconstexpr int thread_m = 8;"};
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    return Reshaper(kernel).rewrites();
  }
};

} // namespace

const Mutator& reshape_tile() {
  static const ReshapeTile instance;
  return instance;
}

} // namespace evo
