#include "mutators/folding.hpp"

#include <algorithm>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/grid_mentions.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/names.hpp"
#include "mutators/removal.hpp"
#include "mutators/render.hpp"
#include "mutators/workspace_size.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

const clang::VarDecl* variable_in(const clang::Expr& expr) {
  const auto* use = dyn_cast<clang::DeclRefExpr>(expr.IgnoreParenImpCasts());
  return use == nullptr ? nullptr : dyn_cast<clang::VarDecl>(use->getDecl());
}

/// The loop over the rank, with the definition of the row that its thread works on.
struct RowByRow {
  const clang::DeclStmt* definition = nullptr;
  const clang::VarDecl* row = nullptr;
  CountedLoop ranks;
  const clang::Expr* rows = nullptr; // in the launch
};

class FoldingWriter {
public:
  FoldingWriter(const Kernel& kernel, const DependenceGraph& graph, const LowRank& low_rank,
                const FoldForm& form)
      : kernel_(kernel), graph_(graph), low_rank_(low_rank), code_(low_rank.code), form_(form),
        removal_(kernel), names_(kernel), fold_(names_.fresh("fold")),
        folded_(names_.fresh("folded")), rows_(names_.fresh(fold_ + "_rows")),
        counter_(names_.fresh(fold_ + "_row")), fragment_(names_.fresh(fold_ + "_fragment")) {}

  std::vector<Edit> edits() {
    name_parameters();
    write_element();
    form_.several_rows ? write_row_by_row(row_by_row()) : write_projected(factor_element());
    write_launches();
    write_workspace();
    removal_.function(*low_rank_.project->kernel);
    removal_.statement(*low_rank_.project->call);
    removal_.statement(*low_rank_.update->call);
    removal_.unneeded_declarations({});
    edits_.insert(edits_.end(), removal_.edits().begin(), removal_.edits().end());
    sort_edits(edits_);
    return std::move(edits_);
  }

private:
  void replace(Span span, std::string text) {
    edits_.push_back({span.begin, span.length(), std::move(text)});
  }
  void insert(unsigned offset, std::string text) { edits_.push_back({offset, 0, std::move(text)}); }
  Span span(const clang::Expr& expr) const {
    return checked(span_of(kernel_, expr.getSourceRange()));
  }
  /// With its semicolon.
  Span statement(const clang::Stmt& whole) const { return checked(span_of(kernel_, whole)); }
  Span token(clang::SourceLocation at) const {
    return checked(span_of(kernel_, clang::SourceRange(at)));
  }
  std::string text(const clang::Expr& expr, Binding binding) const {
    const auto found = operand(kernel_, expr, binding);
    return found ? *found : throw CannotWrite{};
  }

  // ---- the kernel -------------------------------------------------------------------------------

  void name_parameters() {
    std::set<std::string> taken = names_in(*code_.kernel);
    const auto name = [&](const std::string& wanted) {
      const std::string result = fresh_name(wanted, fold_, taken);
      taken.insert(result);
      return result;
    };
    factor_ = name(low_rank_.factor->getNameAsString());
    matrix_ = name(low_rank_.matrix->getNameAsString());
    replace(token(code_.kernel->getLocation()), fold_);
    replace(checked(span_of(kernel_, low_rank_.target->getSourceRange())),
            restricted(*low_rank_.factor, factor_));
    replace(checked(span_of(kernel_, low_rank_.result->getSourceRange())),
            restricted(*low_rank_.matrix, matrix_) + ", " + restricted(*low_rank_.result, folded_));
  }

  /// W' is in the workspace, so that nothing else is behind the same pointer.
  std::string restricted(const clang::ParmVarDecl& parameter, const std::string& name) const {
    return declaration(kernel_, parameter,
                       (parameter.getType().isRestrictQualified() ? "" : "__restrict__ ") + name);
  }

  Span base_of(const clang::ArraySubscriptExpr& element) const {
    return span(*element.getBase()->IgnoreParenImpCasts());
  }

  /// Y[e] += x becomes folded[e] = W[e] + x.
  void write_element() {
    for (const ElementRead& read : code_.reads) {
      replace(base_of(*read.element), matrix_);
    }
    const clang::BinaryOperator& assignment = *code_.store.assignment;
    const Span base = base_of(*code_.store.element);
    replace(base, folded_);
    if (!assignment.isCompoundAssignmentOp()) {
      return;
    }
    const auto opcode = clang::BinaryOperator::getOpForCompoundAssignment(assignment.getOpcode());
    const std::string old =
        render(kernel_, span(*code_.store.element), {{base.begin, base.length(), matrix_}});
    replace(token(assignment.getOperatorLoc()),
            "= " + old + " " + clang::BinaryOperator::getOpcodeStr(opcode).str());
    const Span value = span(*assignment.getRHS());
    if (text(*assignment.getRHS(), Binding::Product) != render(kernel_, value)) {
      insert(value.begin, "(");
      insert(value.end, ")");
    }
  }

  /// B's element where the update reads T's.
  std::string factor_element() const {
    const ElementIndex& index = low_rank_.projected.front().index;
    if (form_.pitch.empty()) {
      return factor_ + "[" + text_of(kernel_, *low_rank_.projected.front().element->getIdx()) + "]";
    }
    std::string column;
    for (const clang::Expr* summand : index.column) {
      column += (column.empty() ? "" : " + ") +
                text(*summand, index.column.size() == 1 ? Binding::Product : Binding::Sum);
    }
    return factor_ + "[" + (index.column.size() == 1 ? column : "(" + column + ")") + " * " +
           form_.pitch + " + " + text(*index.row, Binding::Sum) + "]";
  }

  void write_projected(const std::string& instead) {
    replace(span(*low_rank_.projected.front().element), instead);
  }

  // ---- several rows per thread ------------------------------------------------------------------

  RowByRow row_by_row() const {
    RowByRow found;
    found.row = variable_in(*code_.row());
    found.rows = grid_sides(*low_rank_.update->grid).y;
    const bool in_row = found.row != nullptr && found.row->isLocalVarDecl() &&
                        found.row->hasInit() &&
                        text_of(kernel_, *found.row->getInit()) == "blockIdx.y";
    const bool as_many =
        found.rows != nullptr &&
        same_expression(kernel_, found.rows, argument_for(*code_.store.index.width));
    const bool free = std::ranges::none_of(code_.store.conditions, [&](const Condition& condition) {
      return found.row == nullptr || mentions(*condition.expression, *found.row);
    });
    if (!in_row || !as_many || !free || !stands_together()) {
      throw CannotWrite{};
    }
    found.definition = &definition_of(*found.row);
    found.ranks = loop_over_ranks();
    return found;
  }

  /// Whether what the update does stands beside its store.
  bool stands_together() const {
    return !code_.statements.empty() &&
           std::ranges::all_of(code_.statements, [&](const clang::Stmt* done) {
             return parent_of(kernel_, *done) == code_.store.around.front() &&
                    !clang::isa<clang::AttributedStmt>(done);
           });
  }

  const clang::DeclStmt& definition_of(const clang::VarDecl& variable) const {
    for (const clang::Stmt* around : code_.store.around) {
      for (const clang::Stmt* child : around->children()) {
        const auto* definition = clang::dyn_cast_or_null<clang::DeclStmt>(child);
        if (definition != nullptr && definition->isSingleDecl() &&
            definition->getSingleDecl() == &variable) {
          return *definition;
        }
      }
    }
    throw CannotWrite{};
  }

  CountedLoop loop_over_ranks() const {
    const ElementRead& read = low_rank_.projected.front();
    for (const clang::Stmt* done : code_.statements) {
      const auto* loop = dyn_cast<clang::ForStmt>(done);
      const auto counted = loop != nullptr && contains(*loop->getBody(), *read.element)
                               ? counted_loop(kernel_, *loop)
                               : std::nullopt;
      if (counted && counted->counter == variable_in(*read.index.row) &&
          constant_value(kernel_, *counted->start) && constant_value(kernel_, *counted->limit)) {
        return *counted;
      }
    }
    throw CannotWrite{};
  }

  void write_row_by_row(const RowByRow& by_row) {
    const Span loop = checked(span_of(kernel_, *by_row.ranks.loop));
    const Span body = checked(span_of(kernel_, *by_row.ranks.loop->getBody()));
    const std::string element = fragment_ + "[" + by_row.ranks.counter->getNameAsString() + "]";
    const std::string type =
        low_rank_.projected.front().element->getType().getUnqualifiedType().getAsString();
    std::string before = type + " " + fragment_ + "[" + text_of(kernel_, *by_row.ranks.limit) +
                         "];\n" + render(kernel_, {loop.begin, body.begin}) + element + " = " +
                         factor_element() + ";\n";
    before += "for (int " + counter_ + " = 0; " + counter_ + " < " + rows_ + "; ++" + counter_ +
              ") {\n" + by_row.row->getType().getAsString() + " " + by_row.row->getNameAsString() +
              " = " + text_of(kernel_, *by_row.row->getInit()) + " * " + rows_ + " + " + counter_ +
              ";\nif (" + by_row.row->getNameAsString() + " < " +
              code_.store.index.width->getNameAsString() + ") {\n";
    insert(statement(*code_.statements.front()).begin, before);
    insert(statement(*code_.store.assignment).end, "\n}\n}");
    write_projected(element);
    removal_.statement(*by_row.definition);
    const auto place = offset_before(kernel_, *code_.kernel);
    insert(place ? *place : throw CannotWrite{},
           "constexpr int " + rows_ + " = " + std::to_string(rows_per_thread) + ";\n\n");
    launch_edits_.push_back(
        {span(*by_row.rows).begin, span(*by_row.rows).length(),
         "(" + text(*by_row.rows, Binding::Sum) + " + " + rows_ + " - 1) / " + rows_});
  }

  // ---- the entry --------------------------------------------------------------------------------

  const clang::Expr* argument_for(const clang::ParmVarDecl& parameter) const {
    return low_rank_.update->arguments[parameter.getFunctionScopeIndex()];
  }

  std::string known_text(const clang::Expr& argument) const {
    const auto place = static_cast<std::size_t>(low_rank_.multiply - graph_.launches().data());
    return graph_.is_known_before(argument, place) ? text_of(kernel_, argument)
                                                   : throw CannotWrite{};
  }

  /// The pointer to T, which becomes the one to W'. A variable of that name would mislead.
  std::string workspace_pointer() {
    const clang::Expr& pointer = present(argument_for(*low_rank_.target));
    const std::string written = known_text(pointer);
    const clang::VarDecl* variable = variable_in(pointer);
    if (variable == nullptr || !variable->isLocalVarDecl()) {
      return written;
    }
    const auto uses = references(kernel_, *variable);
    const auto goes = [&](const Span& use) {
      const auto in = [&](const Launch& launch) {
        return statement(*launch.call).contains(use.begin);
      };
      return in(*low_rank_.project) || in(*low_rank_.update);
    };
    if (!uses || !std::ranges::all_of(*uses, goes)) {
      return written;
    }
    replace(token(variable->getLocation()), folded_);
    return folded_;
  }

  void write_launches() {
    const Launch& project = *low_rank_.project;
    const Launch& multiply = *low_rank_.multiply;
    const Launch& update = *low_rank_.update;
    const std::string pointer = workspace_pointer();
    const clang::Expr& matrix = *multiply.arguments[low_rank_.matrix->getFunctionScopeIndex()];
    const clang::Expr& factor = *project.arguments[low_rank_.factor->getFunctionScopeIndex()];
    const auto change = [&](const clang::Expr& expr, const std::string& instead) {
      launch_edits_.push_back({span(expr).begin, span(expr).length(), instead});
    };
    change(*update.call->getCallee()->IgnoreParenImpCasts(), fold_);
    change(*argument_for(*low_rank_.target), known_text(factor));
    change(*argument_for(*low_rank_.result), known_text(matrix) + ", " + pointer);
    known_text(*update.call);
    const Span call = statement(*update.call);
    insert(statement(*multiply.call).begin, render(kernel_, call, launch_edits_) + "\n");
    replace(span(matrix), pointer);
  }

  /// The workspace holds one square matrix now, as wide as Y.
  void write_workspace() {
    const clang::Expr& bytes = present(bytes_returned(*low_rank_.workspace));
    const auto& width = present(clang::dyn_cast_or_null<clang::ParmVarDecl>(
        variable_in(*argument_for(*code_.store.index.width))));
    const std::string side =
        present(parameter_of_workspace(graph_.entry(), *low_rank_.workspace, width))
            .getNameAsString();
    const std::string type =
        low_rank_.result->getType()->getPointeeType().getUnqualifiedType().getAsString();
    replace(span(bytes), "sizeof(" + type + ") * " + side + " * " + side);
  }

  static constexpr int rows_per_thread = 16;

  const Kernel& kernel_;
  const DependenceGraph& graph_;
  const LowRank& low_rank_;
  const ElementwiseUpdate& code_;
  const FoldForm& form_;
  Removal removal_;
  Names names_;
  const std::string fold_;   // the kernel
  const std::string folded_; // W'
  const std::string rows_;
  const std::string counter_;
  const std::string fragment_;
  std::string factor_; // B and W in the kernel
  std::string matrix_;
  std::vector<Edit> launch_edits_;
  std::vector<Edit> edits_;
};

} // namespace

std::optional<std::vector<Edit>> fold(const Kernel& kernel, const DependenceGraph& graph,
                                      const LowRank& low_rank, const FoldForm& form) {
  try {
    return FoldingWriter(kernel, graph, low_rank, form).edits();
  } catch (const CannotWrite&) {
    return std::nullopt;
  }
}

} // namespace evo
