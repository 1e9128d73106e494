#include "mutators/warp_tile.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/constants.hpp"
#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/constant_placement.hpp"
#include "mutators/names.hpp"
#include "mutators/render.hpp"
#include "mutators/target.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::array<std::int64_t, 4> lanes{2, 4, 8, 16}; // along the faster coordinate

std::string label(const ThreadBlock& block, std::int64_t lanes_n) {
  return block.function->getNameAsString() + "/lanes " + std::to_string(warp_size / lanes_n) + "x" +
         std::to_string(lanes_n);
}

/// thread / columns and thread % columns in the definitions of a block's coordinates.
struct Grid {
  const clang::Expr* columns = nullptr;
  std::vector<const clang::Expr*> threads; // the operands on the left
  bool has_rows = false;
  bool has_columns = false;
};

class GridCollector : public SyntaxVisitor {
public:
  GridCollector(const Kernel& kernel, const ThreadBlock& block)
      : kernel_(kernel), block_(block), evaluator_(kernel) {}

  bool VisitBinaryOperator(clang::BinaryOperator* operation) override {
    const bool divides = operation->getOpcode() == clang::BO_Div;
    if ((!divides && operation->getOpcode() != clang::BO_Rem) ||
        !constant_value(kernel_, *operation->getRHS()) || !is_thread(*operation->getLHS())) {
      return true;
    }
    auto grid = std::ranges::find_if(grids, [&](const Grid& known) {
      return same_expression(kernel_, known.columns, operation->getRHS());
    });
    if (grid == grids.end()) {
      grid = grids.insert(grid, Grid{.columns = operation->getRHS(), .threads = {}});
    }
    grid->threads.push_back(operation->getLHS());
    (divides ? grid->has_rows : grid->has_columns) = true;
    return true;
  }

  std::vector<Grid> grids;

private:
  /// threadIdx.x, or a name for it.
  bool is_thread(const clang::Expr& expr) {
    if (!clang::isa<clang::MemberExpr, clang::DeclRefExpr>(expr.IgnoreParenImpCasts())) {
      return false;
    }
    const auto values = thread_values(evaluator_, block_, expr);
    return values && std::ranges::is_sorted(*values) && is_permutation(*values);
  }

  const Kernel& kernel_;
  const ThreadBlock& block_;
  Evaluator evaluator_;
};

/// One kernel's rewrites.
class WarpTiling {
public:
  WarpTiling(const Kernel& kernel, const ThreadBlock& block, ThreadExchange& exchange)
      : kernel_(kernel), block_(block), exchange_(exchange) {}

  std::vector<Rewrite> rewrites() {
    if (block_.threads % warp_size != 0) {
      return {};
    }
    if (const clang::VarDecl* number = own_number()) {
      return renumbered(*number);
    }
    GridCollector collector(kernel_, block_);
    for (const clang::VarDecl* local : block_.locals) {
      collector.TraverseStmt(const_cast<clang::Expr*>(local->getInit()));
    }
    for (const Grid& grid : collector.grids) {
      if (grid.has_rows && grid.has_columns) {
        if (auto result = tiled(grid); !result.empty()) {
          return result;
        }
      }
    }
    return {};
  }

private:
  /// A variable that numbers the threads of a block, by more than another name for threadIdx.x.
  const clang::VarDecl* own_number() const {
    Evaluator evaluator(kernel_);
    const auto found = std::ranges::find_if(block_.locals, [&](const clang::VarDecl* local) {
      const auto* operation =
          dyn_cast<clang::BinaryOperator>(local->getInit()->IgnoreParenImpCasts());
      const auto values =
          operation != nullptr ? thread_values(evaluator, block_, *operation) : std::nullopt;
      return values && is_permutation(*values);
    });
    return found == block_.locals.end() ? nullptr : *found;
  }

  // Numbered anew

  std::vector<Rewrite> tiled(const Grid& grid) {
    const std::int64_t columns = *constant_value(kernel_, *grid.columns);
    std::vector<Rewrite> result;
    for (const std::int64_t lanes_n : lanes) {
      const std::int64_t lanes_m = warp_size / lanes_n;
      if (lanes_n < columns && columns % lanes_n == 0 &&
          block_.threads % (columns * lanes_m) == 0) {
        if (auto edits = tiled(grid, lanes_n)) {
          result.push_back({label(block_, lanes_n), std::move(*edits)});
        }
      }
    }
    return !result.empty() && may_exchange(grid) ? result : std::vector<Rewrite>{};
  }

  std::optional<std::vector<Edit>> tiled(const Grid& grid, std::int64_t lanes_n) const {
    const auto columns = operand(kernel_, *grid.columns, Binding::Operand);
    const auto definition = begin_of_first(grid);
    std::vector<const clang::VarDecl*> mentioned = mentioned_constants(*grid.columns);
    mentioned.push_back(block_.named);
    std::erase(mentioned, nullptr);
    const auto place = offset_behind(kernel_, mentioned, *block_.function);
    Names names(kernel_);
    const std::string thread = names.fresh("thread");
    auto edits = with_threads(grid, thread);
    if (!columns || !definition || !place || !edits) {
      return std::nullopt;
    }
    const std::string prefix = block_.function->getNameAsString() + "_";
    const std::string n = names.fresh(prefix + "lanes_n");
    const std::string m = names.fresh(prefix + "lanes_m");
    const std::string warps = names.fresh(prefix + "warps_n");
    const std::string size = std::to_string(warp_size);
    edits->push_back({*place, 0,
                      "constexpr int " + n + " = " + std::to_string(lanes_n) + ";\n" +      //
                          "constexpr int " + m + " = " + size + " / " + n + ";\n" +         //
                          "constexpr int " + warps + " = " + *columns + " / " + n + ";\n" + //
                          "static_assert(" + *columns + " % " + n + " == 0 && " + block_.written +
                          " % (" + *columns + " * " + m + ") == 0);\n"});
    const std::string warp = names.fresh("warp");
    const std::string lane = names.fresh("lane");
    edits->push_back({*definition, 0,
                      "const int " + warp + " = threadIdx.x / " + size + ";\n" + //
                          "const int " + lane + " = threadIdx.x % " + size + ";\n" + "const int " +
                          thread + " = (" + warp + " / " + warps + " * " + m + " + " + lane +
                          " / " + n + ") * " + *columns + " + " + warp + " % " + warps + " * " + n +
                          " + " + lane + " % " + n + ";\n"});
    sort_edits(*edits);
    return edits;
  }

  /// Where the first definition that the grid stands in begins.
  std::optional<unsigned> begin_of_first(const Grid& grid) const {
    for (const clang::Stmt* statement : block_.function->getBody()->children()) {
      if (contains(*statement, *grid.threads.front())) {
        const auto span = span_of(kernel_, *statement);
        return span ? std::optional(span->begin) : std::nullopt;
      }
    }
    return std::nullopt;
  }

  std::optional<std::vector<Edit>> with_threads(const Grid& grid, const std::string& number) const {
    std::vector<Edit> edits;
    for (const clang::Expr* thread : grid.threads) {
      const auto span = span_of(kernel_, thread->getSourceRange());
      if (!span) {
        return std::nullopt;
      }
      edits.push_back({span->begin, span->length(), number});
    }
    sort_edits(edits);
    return edits;
  }

  bool may_exchange(const Grid& grid) const {
    const auto edits =
        with_threads(grid, "(" + ThreadExchange::moved_on("threadIdx.x", block_.threads) + ")");
    return edits && exchange_.keeps_outputs(*edits);
  }

  // Numbered already

  std::vector<Rewrite> renumbered(const clang::VarDecl& number) {
    const ConstantRules rules = find_rules(kernel_);
    const std::vector<Constant> constants = find_constants(kernel_);
    std::vector<Rewrite> result;
    const auto decisive = std::ranges::find_if(constants, [&](const Constant& constant) {
      return constant.free && std::ranges::find(lanes, constant.value) != lanes.end() &&
             decides_only(constant, number, constants);
    });
    if (decisive != constants.end()) {
      const Constant& constant = *decisive;
      for (const std::int64_t value : lanes) {
        Evaluator evaluator(kernel_, {{constant.declaration, value}});
        const auto values = thread_values(evaluator, block_, *number.getInit());
        const auto edit = set_constant(kernel_, constant, value);
        if (value != constant.value && values && is_permutation(*values) && edit &&
            !check_rules(rules, evaluator)) {
          result.push_back({label(block_, value), {*edit}});
        }
      }
    }
    return !result.empty() && may_exchange(number) ? result : std::vector<Rewrite>{};
  }

  /// Whether a constant, and what is computed of it, says nothing but how threads are numbered.
  bool decides_only(const Constant& constant, const clang::VarDecl& number,
                    const std::vector<Constant>& all) const {
    const auto uses = references(kernel_, *constant.declaration);
    const auto own = span_of(kernel_, number.getInit()->getSourceRange());
    return uses && own && !uses->empty() && std::ranges::all_of(*uses, [&](const Span& use) {
             if (own->contains(use.begin) || in_assertion(use)) {
               return true;
             }
             const auto derived = std::ranges::find_if(all, [&](const Constant& other) {
               const auto span = span_of(kernel_, other.initialiser->getSourceRange());
               return span && span->contains(use.begin);
             });
             return derived != all.end() && decides_only(*derived, number, all);
           });
  }

  bool in_assertion(const Span& use) const {
    const auto& declarations = kernel_.ast().getTranslationUnitDecl()->decls();
    return std::ranges::any_of(declarations, [&](const clang::Decl* declaration) {
      const auto span = clang::isa<clang::StaticAssertDecl>(declaration)
                            ? span_of(kernel_, declaration->getSourceRange())
                            : std::nullopt;
      return span && span->contains(use.begin);
    });
  }

  bool may_exchange(const clang::VarDecl& number) const {
    const auto span = span_of(kernel_, number.getInit()->getSourceRange());
    return span && exchange_.keeps_outputs(
                       {{span->begin, span->length(),
                         ThreadExchange::moved_on(render(kernel_, *span), block_.threads)}});
  }

  const Kernel& kernel_;
  const ThreadBlock& block_;
  ThreadExchange& exchange_;
};

} // namespace

std::vector<Rewrite> warp_tiles(const Kernel& kernel, const ThreadBlock& block,
                                ThreadExchange& exchange) {
  return WarpTiling(kernel, block, exchange).rewrites();
}

} // namespace evo
