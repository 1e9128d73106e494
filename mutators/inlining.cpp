#include "mutators/inlining.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/element_function.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/names.hpp"
#include "mutators/register_copy.hpp"
#include "mutators/removal.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

class InliningWriter {
public:
  InliningWriter(const Kernel& kernel, const DependenceGraph& graph, const Inlining& inlining)
      : kernel_(kernel), graph_(graph), inlining_(inlining), code_(inlining.value.code),
        removal_(kernel), names_(kernel), function_(kernel, inlining.value, names_) {}

  std::vector<Edit> edits() {
    const auto copy = copy_into_registers();
    if (copy) {
      function_.hoist(copy->varies(inlining_.reads.front()));
    }
    name_parameters();
    const auto place = offset_before(kernel_, *inlining_.consumer->kernel);
    insert(place ? *place : throw CannotWrite{}, function_.definition());
    for (const ElementRead& read : inlining_.reads) {
      copy ? write_behind(*copy, read) : write_call(read);
    }
    write_signature();
    remove();
    sort_edits(edits_);
    return std::move(edits_);
  }

private:
  Span span(const clang::Expr& expr) const {
    return checked(span_of(kernel_, expr.getSourceRange()));
  }
  void replace(Span span, std::string text) {
    edits_.push_back({span.begin, span.length(), std::move(text)});
  }
  void insert(unsigned offset, std::string text) { edits_.push_back({offset, 0, std::move(text)}); }

  // ---- the reads --------------------------------------------------------------------------------

  /// Where the only read goes into registers, which can take the old element first.
  std::optional<RegisterCopy> copy_into_registers() const {
    return inlining_.value.old != nullptr && inlining_.reads.size() == 1
               ? register_copy(kernel_, *inlining_.reads.front().element)
               : std::nullopt;
  }

  /// What the producer's parameters that the value needs are called in the consumer.
  void name_parameters() {
    std::set<std::string> taken = names_in(*inlining_.consumer->kernel);
    taken.erase(inlining_.matrix->getNameAsString()); // it goes
    for (const clang::ParmVarDecl* parameter : function_.parameters_of_value()) {
      const clang::Expr* argument =
          inlining_.producer->arguments[parameter->getFunctionScopeIndex()];
      const auto* same = parameter_given(kernel_, *inlining_.consumer, argument, *parameter);
      given_[parameter] = same != nullptr ? same->getNameAsString()
                                          : fresh_name(parameter->getNameAsString(),
                                                       code_.kernel->getNameAsString(), taken);
      taken.insert(given_[parameter]);
      if (same == nullptr) {
        added_.push_back(parameter);
      }
    }
  }

  ElementPlace place_of(const ElementRead& read, std::string old) const {
    ElementPlace place{
        .row = text_of(kernel_, *read.index.row), .column = {}, .old = std::move(old)};
    for (const clang::Expr* summand : read.index.column) {
      const auto text = operand(kernel_, *summand, Binding::Sum);
      place.column += (place.column.empty() ? "" : " + ") + (text ? *text : throw CannotWrite{});
    }
    return place;
  }

  Span base_of(const ElementRead& read) const {
    return span(*read.element->getBase()->IgnoreParenImpCasts());
  }

  std::string old_matrix() const {
    return inlining_.value.old == nullptr ? "" : given_.at(inlining_.value.old);
  }

  void write_call(const ElementRead& read) {
    const Span element = span(*read.element);
    const Span base = base_of(read);
    const std::string old = render(kernel_, element, {{base.begin, base.length(), old_matrix()}});
    replace(element, function_.call(place_of(read, old), given_));
  }

  /// Behind the copy of the old elements, what makes the elements of them.
  void write_behind(const RegisterCopy& copy, const ElementRead& read) {
    replace(base_of(read), old_matrix());
    const std::string registers = text_of(kernel_, *copy.assignment->getLHS());
    const ElementPlace place = place_of(read, registers);
    const std::string update = registers + " = " + function_.call(place, given_) + ";\n";
    const std::string hoisted =
        function_.hoisted(place, given_, names_in(*inlining_.consumer->kernel));
    insert(copy.end, "\n" + guarded(kernel_, copy, hoisted, update));
  }

  // ---- the consumer's parameters ----------------------------------------------------------------

  void write_signature() {
    std::string parameters;
    std::string arguments;
    const auto add = [&](const std::string& parameter, const std::string& argument) {
      parameters += (parameters.empty() ? "" : ", ") + parameter;
      arguments += (arguments.empty() ? "" : ", ") + argument;
    };
    const Launch& consumer = *inlining_.consumer;
    for (const clang::ParmVarDecl* parameter : consumer.kernel->parameters()) {
      if (parameter != inlining_.matrix) {
        add(declaration(kernel_, *parameter, parameter->getNameAsString()),
            text_of(kernel_, *consumer.arguments[parameter->getFunctionScopeIndex()]));
        continue;
      }
      for (const clang::ParmVarDecl* added : added_) {
        add(declaration(kernel_, *added, given_.at(added)), argument_text(*added));
      }
    }
    const auto whole = [&](clang::SourceRange first, clang::SourceRange last) {
      return Span{checked(span_of(kernel_, first)).begin, checked(span_of(kernel_, last)).end};
    };
    const auto declared = consumer.kernel->parameters();
    replace(whole(declared.front()->getSourceRange(), declared.back()->getSourceRange()),
            parameters);
    replace(whole(consumer.arguments.front()->getSourceRange(),
                  consumer.arguments.back()->getSourceRange()),
            arguments);
  }

  std::string argument_text(const clang::ParmVarDecl& parameter) const {
    const clang::Expr& argument = *inlining_.producer->arguments[parameter.getFunctionScopeIndex()];
    const auto consumer = static_cast<std::size_t>(inlining_.consumer - graph_.launches().data());
    return graph_.is_known_before(argument, consumer) ? text_of(kernel_, argument)
                                                      : throw CannotWrite{};
  }

  // ---- what is gone -----------------------------------------------------------------------------

  void remove() {
    removal_.function(*code_.kernel);
    removal_.statement(*inlining_.producer->call);
    remove_pointer();
    removal_.unneeded_declarations(function_.used());
    const auto* workspace = workspace_function(kernel_, graph_.entry());
    const auto smaller =
        workspace == nullptr ? std::nullopt : without_region(kernel_, *workspace, inlining_.region);
    if (smaller) {
      edits_.push_back(*smaller);
    }
    edits_.insert(edits_.end(), removal_.edits().begin(), removal_.edits().end());
  }

  /// The entry's variable that points to the matrix, where nothing else needs it.
  void remove_pointer() {
    const clang::Expr* argument =
        inlining_.producer->arguments[code_.array->getFunctionScopeIndex()];
    const clang::VarDecl* pointer = variable_of(argument);
    const auto uses = pointer != nullptr && pointer->isLocalVarDecl()
                          ? references(kernel_, *pointer)
                          : std::nullopt;
    const Span read =
        span(*inlining_.consumer->arguments[inlining_.matrix->getFunctionScopeIndex()]);
    const bool unneeded = uses && std::ranges::all_of(*uses, [&](const Span& use) {
                            return removal_.removes(use.begin) || read.contains(use.begin);
                          });
    for (const clang::Stmt* statement : graph_.entry().getBody()->children()) {
      const auto* definition = clang::dyn_cast<clang::DeclStmt>(statement);
      if (unneeded && definition != nullptr && definition->isSingleDecl() &&
          definition->getSingleDecl() == pointer) {
        removal_.statement(*definition);
      }
    }
  }

  const Kernel& kernel_;
  const DependenceGraph& graph_;
  const Inlining& inlining_;
  const ElementwiseUpdate& code_;
  Removal removal_;
  Names names_;
  ElementFunction function_;
  ParameterNames given_;                         // in the consumer
  std::vector<const clang::ParmVarDecl*> added_; // to it
  std::vector<Edit> edits_;
};

} // namespace

std::optional<std::vector<Edit>> inlined(const Kernel& kernel, const DependenceGraph& graph,
                                         const Inlining& inlining) {
  try {
    return InliningWriter(kernel, graph, inlining).edits();
  } catch (const CannotWrite&) {
    return std::nullopt;
  }
}

} // namespace evo
