#include "mutators/tile_range.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/linear_form.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/first_tiles.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// Mentions of where a kernel's loops begin and end.
class BoundMentions : public SyntaxVisitor {
public:
  BoundMentions(const Kernel& kernel, const TileLoops& loops, const std::vector<FirstTiles>& ahead,
                LinearView& view)
      : kernel_(kernel), loops_(loops), ahead_(ahead), view_(view) {}

  bool VisitBinaryOperator(clang::BinaryOperator* test) override {
    const clang::Expr* left = test->getLHS();
    const clang::Expr* right = test->getRHS();
    const auto opcode = test->getOpcode();
    const bool at_limit = variable_of(right) == loops_.limit;
    const bool asks_for_tile = opcode == clang::BO_LT || opcode == clang::BO_GE;
    if (at_limit && asks_for_tile && follows_count(*left) && view_.is_uniform(*left)) {
      ends.push_back(right);
    }
    const auto elements = at_limit ? constant_value(kernel_, *left) : std::nullopt;
    if (opcode == clang::BO_LE && elements &&
        std::ranges::find(ahead_, *elements, &FirstTiles::elements) != ahead_.end()) {
      counted_from_begin.push_back(left);
      ends.push_back(right);
    }
    if (opcode == clang::BO_GT && is_counter(variable_of(left)) &&
        constant_value(kernel_, *right) == 0) {
      begins.push_back(right);
    }
    return true;
  }

  bool VisitCallExpr(clang::CallExpr* call) override {
    const clang::FunctionDecl* callee = call->getDirectCallee();
    if (callee != nullptr && callee->getNameAsString() == "min" && call->getNumArgs() == 2 &&
        variable_of(call->getArg(0)) == loops_.limit && follows_count(*call->getArg(1))) {
      ends.push_back(call->getArg(0));
    }
    return true;
  }

  std::vector<const clang::Expr*> begins;             // piece > 0
  std::vector<const clang::Expr*> ends;               // k0 + K < d, min(d, piece + length)
  std::vector<const clang::Expr*> counted_from_begin; // stages * K <= d

private:
  bool is_counter(const clang::VarDecl* variable) const {
    return variable != nullptr &&
           std::ranges::find(loops_.loops, variable, &CountedLoop::counter) != loops_.loops.end();
  }

  bool follows_count(const clang::Stmt& code) const {
    const auto* use = dyn_cast<clang::DeclRefExpr>(&code);
    const auto* variable =
        clang::dyn_cast_or_null<clang::VarDecl>(use == nullptr ? nullptr : use->getDecl());
    if (variable != nullptr) {
      return is_counter(variable) ||
             std::ranges::find(ahead_, variable, &FirstTiles::first) != ahead_.end() ||
             (variable->isLocalVarDecl() && variable->hasInit() &&
              variable->getType().isConstQualified() && follows_count(*variable->getInit()));
    }
    return std::ranges::any_of(code.children(), [this](const clang::Stmt* child) {
      return child != nullptr && follows_count(*child);
    });
  }

  const Kernel& kernel_;
  const TileLoops& loops_;
  const std::vector<FirstTiles>& ahead_;
  LinearView& view_;
};

} // namespace

std::optional<CountedLoop> loop_over_pieces(const Kernel& kernel, const CountedLoop& reduction) {
  const clang::VarDecl* start = variable_of(reduction.start);
  return start == nullptr ? std::nullopt : loop_of_counter(kernel, *start);
}

std::vector<Edit> count_tiles(const Kernel& kernel, const clang::FunctionDecl& function,
                              const TileLoops& loops, const std::string& begin,
                              const std::string& end) {
  std::vector<FirstTiles> ahead = find_first_tiles(kernel, function);
  std::erase_if(ahead, [&](const FirstTiles& tiles) {
    return !same_expression(kernel, tiles.step, loops.step);
  });
  LinearView view(kernel, function, checked(span_of(kernel, *function.getBody())).begin);
  BoundMentions bounds(kernel, loops, ahead, view);
  bounds.TraverseStmt(function.getBody());
  for (const CountedLoop& loop : loops.loops) {
    bounds.begins.push_back(loop.start);
  }
  for (const FirstTiles& tiles : ahead) {
    bounds.counted_from_begin.push_back(tiles.first->getInit());
  }
  std::vector<Edit> edits;
  const auto place = [&](const clang::Expr& bound) {
    return checked(span_of(kernel, bound.getSourceRange()));
  };
  for (const clang::Expr* bound : bounds.begins) {
    edits.push_back({place(*bound).begin, place(*bound).length(), begin});
  }
  for (const clang::Expr* bound : bounds.ends) {
    edits.push_back({place(*bound).begin, place(*bound).length(), end});
  }
  for (const clang::Expr* bound : bounds.counted_from_begin) {
    edits.push_back({place(*bound).begin, 0, begin + " + "});
  }
  return edits;
}

} // namespace evo
