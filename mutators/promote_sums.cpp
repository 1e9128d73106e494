// Adds up a reduction in pieces: what a piece comes to is added to the sum itself, now and then.
//
//   before                              after "gemm/k0 promote every 128"
//   float sum[M][N] = {};               float sum[M][N] = {};
//   for (k0 = 0; k0 < d; k0 += K) {     float partial[M][N] = {};
//     ...                               for (k0 = 0; k0 < d; k0 += K) {
//     sum[i][j] += ...                    ...
//   }                                     partial[i][j] += ...
//                                         if ((k0 + K) % promotion == 0 || k0 + K >= d) {
//                                           for each i, j:
//                                             sum[i][j] += partial[i][j];
//                                             partial[i][j] = 0.0f;
//                                         }
//                                       }
//
// Precondition: an outermost reduction loop that counts from 0 by a constant to a limit, leaves no
// iteration early, and mentions one local array of floats that it updates and that is all zeros
// where it is defined. The length of a piece is a constant, and a multiple of the step. Legal if
// both files compute the same polynomials of their inputs (analysis/meaning.hpp). The sums are
// added in another order. Where a reduction is in pieces already, these get another length.
//
// Expected gain: none in time, and as many registers more as there are sums. Tensor cores truncate
// what they add, which one long sum collects: of three products of fp16, d = 4096, pieces of 128
// leave a twentieth of the error, so that larger inputs pass.
#include <algorithm>
#include <array>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>
#include <clang/AST/TypeLoc.h>

#include "mutators/analysis/constants.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/meaning.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/stage_model.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/constant_placement.hpp"
#include "mutators/edited.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::array<std::int64_t, 5> lengths{64, 128, 256, 512, 1024}; // of a piece, in k

bool leaves_early(const clang::Stmt& code) {
  return clang::isa<clang::ReturnStmt, clang::ContinueStmt, clang::BreakStmt, clang::GotoStmt>(
             code) ||
         std::ranges::any_of(code.children(), [](const clang::Stmt* child) {
           return child != nullptr && leaves_early(*child);
         });
}

/// {} and nothing in it.
bool begins_as_zeros(const clang::VarDecl& array) {
  const auto* list = array.hasInit() ? dyn_cast<clang::InitListExpr>(array.getInit()) : nullptr;
  const clang::InitListExpr* written =
      list != nullptr && list->isSemanticForm() && list->getSyntacticForm() != nullptr
          ? list->getSyntacticForm()
          : list;
  return written != nullptr && written->getNumInits() == 0;
}

/// One reduction loop's rewrites. All of it throws CannotWrite where something cannot be written.
class Promotion {
public:
  Promotion(const Kernel& kernel, const Stages& stages, const CountedLoop& loop)
      : kernel_(kernel), stages_(stages), loop_(loop), sum_(*stages.accumulators.front()),
        names_(kernel) {}

  std::vector<Edit> edits(std::int64_t length) {
    const std::string partial = names_.fresh("partial");
    const std::string promotion = names_.fresh(stages_.kernel->getNameAsString() + "_promotion");
    const auto begin = begin_of(kernel_, *stages_.statement);
    const auto constants = mentioned_constants(*loop_.step);
    const auto place = offset_behind(kernel_, constants, *stages_.kernel);
    const auto uses = references(kernel_, sum_);
    const Span body = checked(span_of(kernel_, loop_.loop->getBody()->getSourceRange()));
    if (!begin || !place || !uses) {
      throw CannotWrite{};
    }
    std::vector<Edit> result{{*place, 0,
                              "constexpr int " + promotion + " = " + std::to_string(length) +
                                  ";\nstatic_assert(" + promotion + " % " +
                                  text(*loop_.step, Binding::Operand) + " == 0);\n"},
                             {*begin, 0, definition(partial) + "\n"},
                             {body.end - 1, 0, addition(partial, promotion)}};
    for (const Span& use : *uses) {
      if (body.contains(use.begin)) {
        result.push_back({use.begin, use.length(), partial});
      }
    }
    sort_edits(result);
    return result;
  }

private:
  std::string text(const clang::Expr& expr, Binding binding) const {
    const auto found = operand(kernel_, expr, binding);
    return found ? *found : throw CannotWrite{};
  }

  std::string definition(const std::string& partial) const {
    std::string result = "float " + partial;
    for (const clang::Expr* extent : written_extents(sum_)) {
      result += "[" + text(*extent, Binding::Sum) + "]";
    }
    return result + " = {};";
  }

  std::string addition(const std::string& partial, const std::string& promotion) {
    const std::vector<const clang::Expr*> sides = written_extents(sum_);
    const std::string next =
        loop_.counter->getNameAsString() + " + " + text(*loop_.step, Binding::Sum);
    std::string result = "if ((" + next + ") % " + promotion + " == 0 || " + next +
                         " >= " + text(*loop_.limit, Binding::Sum) + ") {\n";
    std::string element;
    for (std::size_t side = 0; side < sides.size(); ++side) {
      const char letter = static_cast<char>('i' + static_cast<int>(side));
      const std::string counter = names_.fresh(partial + "_" + letter);
      result += "#pragma unroll\nfor (int " + counter + " = 0; " + counter + " < " +
                text(*sides[side], Binding::Sum) + "; ++" + counter + ") {\n";
      element += "[" + counter + "]";
    }
    result += sum_.getNameAsString() + element + " += " + partial + element + ";\n" + partial +
              element + " = 0.0f;\n" + std::string(sides.size(), '}') + "\n";
    return result + "}\n";
  }

  const Kernel& kernel_;
  const Stages& stages_;
  const CountedLoop& loop_;
  const clang::VarDecl& sum_;
  Names names_;
};

/// The length of the pieces that a loop adds up already: `% length == 0` decides when.
class PieceLength : public SyntaxVisitor {
public:
  explicit PieceLength(const Kernel& kernel) : constants_(find_constants(kernel)) {}

  bool VisitBinaryOperator(clang::BinaryOperator* remainder) override {
    if (remainder->getOpcode() == clang::BO_Rem) {
      const clang::VarDecl* divisor = variable_of(remainder->getRHS());
      const auto named = std::ranges::find(constants_, divisor, &Constant::declaration);
      if (divisor != nullptr && named != constants_.end() && named->free) {
        found = *named;
      }
    }
    return true;
  }

  std::optional<Constant> found;

private:
  const std::vector<Constant> constants_;
};

/// nullopt where the loop does not add up two sums, one to the other under a condition.
std::optional<Constant> length_of_pieces(const Kernel& kernel, const Stages& stages) {
  PieceLength length(kernel);
  for (const StagePart& part : stages.body) {
    const auto* branch = dyn_cast<clang::IfStmt>(part.statement);
    const bool adds_pieces = branch != nullptr && branch->getElse() == nullptr &&
                             std::ranges::all_of(stages.accumulators, [&](const auto* sum) {
                               return mentions(*branch->getThen(), *sum);
                             });
    if (adds_pieces && stages.accumulators.size() == 2) {
      length.TraverseStmt(const_cast<clang::Expr*>(branch->getCond()));
    }
  }
  return length.found;
}

class PromoteSums : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "promote_sums",
        .summary = "adds up long sums in pieces: a twentieth of the error of tensor cores, which "
                   "truncate, for twice the registers",
        .before = "for (k0 ...) sum[i][j] += ...;",
        .after = "for (k0 ...) { partial[i][j] += ...; every 128: sum += partial, partial = 0; }",
        .keeps_order = false,
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const std::vector<DeviceLoop> loops = device_loops(kernel);
    for (const Stages& stages : find_stages(kernel)) {
      const DeviceLoop* loop = find_loop(loops, *stages.loop);
      if (loop == nullptr) {
        continue;
      }
      if (const auto length = length_of_pieces(kernel, stages)) {
        propose_lengths(kernel, *loop, *length, result);
      } else if (can_promote(kernel, stages, loop->counted)) {
        propose(kernel, stages, *loop, result);
      }
    }
    return result;
  }

private:
  static bool can_promote(const Kernel& kernel, const Stages& stages, const CountedLoop& loop) {
    if (stages.inside_loop || stages.accumulators.size() != 1 || loop.step == nullptr ||
        constant_value(kernel, *loop.start) != 0 ||
        !clang::isa<clang::CompoundStmt>(loop.loop->getBody()) ||
        leaves_early(*loop.loop->getBody())) {
      return false;
    }
    const clang::VarDecl& sum = *stages.accumulators.front();
    const std::vector<const clang::Expr*> sides = written_extents(sum);
    return sum.isLocalVarDecl() && !sides.empty() &&
           std::ranges::find(sides, nullptr) == sides.end() && begins_as_zeros(sum) &&
           kernel.ast()
               .getBaseElementType(sum.getType())
               ->isSpecificBuiltinType(clang::BuiltinType::Float);
  }

  /// Of these, one is proved for all, for they differ by a constant alone.
  class Lengths {
  public:
    Lengths(const Kernel& kernel, const DeviceLoop& loop) : kernel_(kernel), loop_(loop) {}

    bool fits(std::int64_t length) const {
      return length % loop_.counted.step_value == 0 && length != loop_.counted.step_value;
    }

    /// Whether more may be legal.
    bool add(std::int64_t length, std::vector<Edit> edits, std::vector<Rewrite>& result) {
      const auto after = proved_ ? std::nullopt : edited(kernel_, edits);
      proved_ = proved_ || (after && same_meaning(kernel_, *after));
      if (proved_) {
        result.push_back(
            {loop_.name + " promote every " + std::to_string(length), std::move(edits)});
      }
      return proved_;
    }

  private:
    const Kernel& kernel_;
    const DeviceLoop& loop_;
    bool proved_ = false;
  };

  static void propose(const Kernel& kernel, const Stages& stages, const DeviceLoop& loop,
                      std::vector<Rewrite>& result) {
    Lengths proposed(kernel, loop);
    for (const std::int64_t length : lengths) {
      try {
        if (proposed.fits(length) &&
            !proposed.add(length, Promotion(kernel, stages, loop.counted).edits(length), result)) {
          return;
        }
      } catch (const CannotWrite&) {
        return;
      }
    }
  }

  /// Loops that share a length change it together, under the first one's name.
  static void propose_lengths(const Kernel& kernel, const DeviceLoop& loop, const Constant& present,
                              std::vector<Rewrite>& result) {
    Lengths proposed(kernel, loop);
    for (const std::int64_t length : lengths) {
      const auto edit = length == present.value || !proposed.fits(length)
                            ? std::nullopt
                            : set_constant(kernel, present, length);
      const bool known = edit && std::ranges::any_of(result, [&](const Rewrite& rewrite) {
                           return rewrite.edits == std::vector{*edit};
                         });
      if (edit && !known && !proposed.add(length, {*edit}, result)) {
        return;
      }
    }
  }
};

} // namespace

const Mutator& promote_sums() {
  static const PromoteSums mutator;
  return mutator;
}

} // namespace evo
