// What a block asks once, so that its threads need not ask it for every element.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mutators/analysis/conditions.hpp"
#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/linear_form.hpp"
#include "mutators/first_tiles.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class BinaryOperator;
class Expr;
class FunctionDecl;
} // namespace clang

namespace evo {

/// The condition of the blocks whose tile lies inside the matrices, all k tiles whole and all rows
/// aligned. It grows by what is asked of it. The same for all threads of a block.
class InteriorCondition {
public:
  /// It will be tested at `offset` of the source. `loops` are the function's loops over k tiles.
  InteriorCondition(const Kernel& kernel, const clang::FunctionDecl& function,
                    std::vector<CountedLoop> loops, unsigned offset);

  /// Whether a condition of the code holds in these blocks for every thread, iteration and size;
  /// from then on, what that needs is a part of this one.
  bool implies(const Condition& condition);

  /// A condition that is as good in these blocks and the same for all threads: k0 + K < d for
  /// k0 + K + k < d. nullopt where there is none or the condition is one itself.
  std::optional<std::string> uniform(const Condition& condition);

  /// While code runs in which a variable is less than a constant.
  LinearView& view() { return view_; }

  /// All parts, joined by &&.
  std::string text() const;

private:
  enum class Kind { Inside, Long, Divisible, Aligned }; // in the order of the text
  struct Part {
    Kind kind = Kind::Inside;
    std::string text;

    auto operator<=>(const Part&) const = default;
  };
  using Parts = std::vector<Part>;

  /// for (counter = start; counter < size + rest; counter += step): at multiples of `step` where
  /// the size is one.
  struct TileLoop {
    const clang::Expr* size = nullptr;
    std::int64_t rest = 0;
    const clang::Expr* step = nullptr;
    std::int64_t step_value = 1;
  };

  // nullopt: it may not hold, whatever is asked.
  std::optional<Parts> needs(const Condition& condition);
  std::optional<Parts> needs_of_part(const Condition& part);
  std::optional<Parts> needs_of_order(const clang::Expr& lower, const clang::Expr& upper,
                                      bool strict);
  std::optional<Parts> inside_tile(const LinearTerm& origin, const LinearTerm& size,
                                   std::int64_t room);
  std::optional<Parts> inside_tile(const TileLoop& loop, const LinearTerm& size, std::int64_t room);
  std::optional<Parts> inside_first_tiles(const LinearTerm& size, std::int64_t room);
  std::optional<Parts> divisible(const clang::BinaryOperator& remainder);
  std::optional<Parts> aligned(const clang::Expr& pointer, const clang::Expr& bytes);

  Part whole_tiles(const TileLoop& loop) const;
  std::optional<TileLoop> tile_loop(const CountedLoop& loop);
  std::optional<std::string> without_threads(const clang::Expr& sum, const TileLoop& loop);
  bool is_signed_enough(const clang::Expr& lower, const clang::Expr& upper);
  bool can_be_written(const clang::Stmt& code) const;
  std::string text(const clang::Expr& expr) const;
  void add(const Parts& parts);

  const Kernel& kernel_;
  const clang::FunctionDecl& function_;
  unsigned offset_;
  LinearView view_;
  std::vector<TileLoop> loops_;
  std::vector<FirstTiles> first_tiles_;
  Parts parts_;
};

} // namespace evo
