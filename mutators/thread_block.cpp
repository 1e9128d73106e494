#include "mutators/thread_block.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/footprint.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/edited.hpp"
#include "mutators/target.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::int64_t coordinate_size = 259;

/// The constant at namespace scope that an expression names; nullptr for any other.
const clang::VarDecl* constant_named(const clang::Expr& expr) {
  const auto* reference = dyn_cast<clang::DeclRefExpr>(expr.IgnoreUnlessSpelledInSource());
  const auto* variable =
      reference == nullptr ? nullptr : dyn_cast<clang::VarDecl>(reference->getDecl());
  return variable != nullptr && variable->isConstexpr() && variable->isFileVarDecl() ? variable
                                                                                     : nullptr;
}

} // namespace

namespace {

/// Those that a piece of code defines right in its braces.
void add_const_integers(const clang::Stmt& braces, std::vector<const clang::VarDecl*>& found) {
  for (const clang::Stmt* statement : braces.children()) {
    const auto* definition = dyn_cast_or_null<clang::DeclStmt>(statement);
    if (definition == nullptr) {
      continue;
    }
    for (const clang::Decl* declaration : definition->decls()) {
      const auto* variable = dyn_cast<clang::VarDecl>(declaration);
      if (variable != nullptr && variable->hasInit() && variable->getType().isConstQualified() &&
          variable->getType()->isIntegerType()) {
        found.push_back(variable);
      }
    }
  }
}

/// Of a function and of its outermost loops: one of them may give a block several tiles.
std::vector<const clang::VarDecl*> thread_integers(const clang::FunctionDecl& function) {
  std::vector<const clang::VarDecl*> result = const_integers(function);
  for (const clang::Stmt* statement : function.getBody()->children()) {
    if (const auto* loop = dyn_cast<clang::ForStmt>(statement)) {
      add_const_integers(*loop->getBody(), result);
    }
  }
  return result;
}

} // namespace

std::vector<const clang::VarDecl*> const_integers(const clang::FunctionDecl& function) {
  std::vector<const clang::VarDecl*> result;
  add_const_integers(*function.getBody(), result);
  return result;
}

std::vector<ThreadBlock> thread_blocks(const Kernel& kernel) {
  const auto dims = find_dims(kernel);
  std::vector<ThreadBlock> result;
  std::map<const clang::FunctionDecl*, Extent3> blocks;
  for (const EvaluatedLaunch& launch :
       dims ? launches_at(kernel, *dims, coordinate_size) : std::vector<EvaluatedLaunch>{}) {
    const clang::FunctionDecl* function = launch.launch.kernel;
    const auto [known, added] = blocks.emplace(function, launch.block);
    if (known->second != launch.block) {
      std::erase_if(result, [&](const ThreadBlock& block) { return block.function == function; });
    } else if (added && launch.block.y == 1 && launch.block.z == 1) {
      const clang::VarDecl* named = constant_named(*launch.launch.block);
      result.push_back(
          {.function = function,
           .threads = launch.block.x,
           .written = named != nullptr ? named->getNameAsString() : std::to_string(launch.block.x),
           .named = named,
           .locals = thread_integers(*function)});
    }
  }
  return result;
}

std::optional<std::vector<std::int64_t>>
thread_values(Evaluator& evaluator, const ThreadBlock& block, const clang::Expr& expr) {
  const Extent3 threads{static_cast<int>(block.threads), 1, 1};
  const auto in_block = [&](Extent3 index) {
    return evaluator.value(expr, {.kernel = block.function,
                                  .grid = {8, 8, 1},
                                  .block = threads,
                                  .index = index,
                                  .arguments = {}});
  };
  const auto first = in_block({0, 0, 0});
  const auto later = in_block({5, 3, 0});
  const auto* values = std::get_if<Ints>(&first);
  const auto* others = std::get_if<Ints>(&later);
  if (values == nullptr || others == nullptr) {
    return std::nullopt;
  }
  std::vector<std::int64_t> result;
  for (std::size_t thread = 0; thread < static_cast<std::size_t>(block.threads); ++thread) {
    if ((*values)[thread] != (*others)[thread]) {
      return std::nullopt;
    }
    result.push_back((*values)[thread]);
  }
  return result;
}

const clang::VarDecl* lane_number(const Kernel& kernel, const ThreadBlock& block) {
  Evaluator evaluator(kernel);
  const auto found = std::ranges::find_if(block.locals, [&](const clang::VarDecl* local) {
    const auto values = thread_values(evaluator, block, *local->getInit());
    for (std::size_t thread = 0; values && thread < values->size(); ++thread) {
      if ((*values)[thread] != static_cast<std::int64_t>(thread) % warp_size) {
        return false;
      }
    }
    return values.has_value() && block.threads > 0;
  });
  return found == block.locals.end() ? nullptr : *found;
}

const clang::VarDecl* placing_local(const Kernel& kernel, const ThreadBlock& block,
                                    const clang::Stmt& code) {
  Evaluator evaluator(kernel);
  const clang::VarDecl* found = nullptr;
  for (const clang::VarDecl* local : block.locals) {
    const auto values =
        mentions(code, *local) ? thread_values(evaluator, block, *local->getInit()) : std::nullopt;
    if (values && std::ranges::adjacent_find(*values, std::not_equal_to<>()) != values->end()) {
      if (found != nullptr) {
        return nullptr;
      }
      found = local;
    }
  }
  return found;
}

bool is_permutation(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<std::int64_t>(i)) {
      return false;
    }
  }
  return true;
}

// x -> (x * multiplier + step) % count is one cycle if the multiplier less one is a multiple of all
// prime factors of count, and of 4 if count is, and the step is coprime to count (Hull and Dobell).
std::string ThreadExchange::moved_on(const std::string& number, std::int64_t count) {
  std::int64_t step = std::max<std::int64_t>(1, count * 3 / 8);
  while (std::gcd(step, count) != 1) {
    ++step;
  }
  std::int64_t primes = count % 4 == 0 ? 2 : 1;
  std::int64_t rest = count;
  for (std::int64_t prime = 2; rest > 1; ++prime) {
    primes *= rest % prime == 0 ? prime : 1;
    while (rest % prime == 0) {
      rest /= prime;
    }
  }
  return "((" + number + ") * " + std::to_string(primes % count + 1) + " + " +
         std::to_string(step) + ") % " + std::to_string(count);
}

const std::vector<std::variant<Meaning, Failure>>& ThreadExchange::before() {
  if (before_.empty()) {
    dims_ = telling_dims_of_a_block(kernel_);
    for (const auto& dims : dims_) {
      before_.push_back(meaning(kernel_, dims));
    }
  }
  return before_;
}

bool ThreadExchange::keeps_outputs(const std::vector<Edit>& edits) {
  const auto after = edited(kernel_, edits);
  const auto& before = this->before();
  if (!after || before.empty() || has_races(*after, dims_.back())) {
    return false;
  }
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    const auto* expected = std::get_if<Meaning>(&before[i]);
    if (expected == nullptr || expected->outputs.empty()) {
      return false;
    }
    const auto found = meaning(*after, dims_[i], expected->touched);
    const auto* same = std::get_if<Meaning>(&found);
    if (same == nullptr || *same != *expected) {
      return false;
    }
  }
  return true;
}

} // namespace evo
