#include "mutators/fusion.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Basic/CharInfo.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

class NameCollector : public clang::RecursiveASTVisitor<NameCollector> {
public:
  bool VisitVarDecl(clang::VarDecl* variable) {
    names.insert(variable->getNameAsString());
    return true;
  }
  bool VisitDeclRefExpr(clang::DeclRefExpr* use) {
    names.insert(use->getDecl()->getNameAsString());
    return true;
  }

  std::set<std::string> names;
};

std::set<std::string> names_in(const clang::FunctionDecl& function) {
  NameCollector collector;
  collector.TraverseDecl(const_cast<clang::FunctionDecl*>(&function));
  return collector.names;
}

/// What stands at namespace scope.
class FileScope : public clang::RecursiveASTVisitor<FileScope> {
public:
  explicit FileScope(const clang::SourceManager& sources) : sources_(sources) {}

  bool VisitNamedDecl(clang::NamedDecl* decl) {
    if (decl->getDeclContext()->isFileContext() && sources_.isInMainFile(decl->getLocation())) {
      names.insert(decl->getNameAsString());
      const auto* variable = clang::dyn_cast<clang::VarDecl>(decl);
      if (variable != nullptr && variable->isConstexpr()) {
        constants.push_back(variable);
      }
    }
    return true;
  }

  std::set<std::string> names;
  std::vector<const clang::VarDecl*> constants;

private:
  const clang::SourceManager& sources_;
};

/// Where a word stands in a text, comments and pragmas included.
std::vector<unsigned> occurrences(const std::string& text, const std::string& word) {
  const auto in_word = [](char c) { return clang::isAsciiIdentifierContinue(c); };
  std::vector<unsigned> found;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !in_word(text[at - 1])) && (end == text.size() || !in_word(text[end]))) {
      found.push_back(static_cast<unsigned>(at));
    }
  }
  return found;
}

class Writer {
public:
  Writer(const Kernel& kernel, const DependenceGraph& graph, const Fusion& fusion)
      : kernel_(kernel), graph_(graph), fusion_(fusion), scope_(kernel.ast().getSourceManager()) {
    scope_.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  }

  std::vector<Edit> edits() {
    add_parameters();
    for (const ElementStore& store : fusion_.stores) {
      const Span span = checked(span_of(kernel_, *store.assignment));
      edits_.push_back({span.begin, span.length(),
                        inlined_update(kernel_, fusion_.update,
                                       {.store = store,
                                        .kernel = *fusion_.producer->kernel,
                                        .in_own_braces = is_alone_in_braces(store),
                                        .parameters = parameters_,
                                        .file_names = scope_.names})});
    }
    move_launches();
    remove_lines(whole(*fusion_.update.kernel), true);
    remove_lines(checked(span_of(kernel_, *fusion_.consumer->call)), false);
    remove_constants();
    sort_edits(edits_);
    return std::move(edits_);
  }

private:
  bool is_alone_in_braces(const ElementStore& store) const {
    return std::ranges::count_if(fusion_.stores, [&](const ElementStore& other) {
             return other.around.front() == store.around.front();
           }) == 1;
  }

  /// The producer's parameter that gets the same argument; nullptr if there is none.
  const clang::ParmVarDecl* same_parameter(const clang::ParmVarDecl& wanted,
                                           const clang::Expr* argument) const {
    const clang::FunctionDecl& producer = *fusion_.producer->kernel;
    for (unsigned i = 0; i < producer.getNumParams(); ++i) {
      const clang::ParmVarDecl* parameter = producer.getParamDecl(i);
      if (same_expression(kernel_, fusion_.producer->arguments[i], argument) &&
          kernel_.ast().hasSameUnqualifiedType(parameter->getType(), wanted.getType()) &&
          !may_change(*producer.getBody(), *parameter)) {
        return parameter;
      }
    }
    return nullptr;
  }

  std::set<const clang::ValueDecl*> used_by_update() const {
    std::set<const clang::ValueDecl*> used;
    visit(kernel_, fusion_.update,
          {.use = [&](const clang::DeclRefExpr& use) { used.insert(use.getDecl()); }});
    return used;
  }

  void add_parameters() {
    const clang::FunctionDecl& producer = *fusion_.producer->kernel;
    std::set<std::string> taken = names_in(producer);
    std::string declarations;
    std::string arguments;
    const auto used = used_by_update();
    for (const clang::ParmVarDecl* parameter : fusion_.update.kernel->parameters()) {
      if (!used.contains(parameter)) {
        continue;
      }
      const clang::Expr* argument = fusion_.consumer->arguments[parameter->getFunctionScopeIndex()];
      if (const clang::ParmVarDecl* same = same_parameter(*parameter, argument)) {
        parameters_[parameter] = same->getNameAsString();
        continue;
      }
      const std::string name =
          fresh_name(parameter->getNameAsString(), fusion_.update.kernel->getNameAsString(), taken);
      taken.insert(name);
      parameters_[parameter] = name;
      declarations += ", " + declaration(*parameter, name);
      arguments += ", " + argument_text(*argument);
    }
    const clang::ParmVarDecl* last = producer.parameters().back();
    insert(checked(span_of(kernel_, last->getSourceRange())).end, declarations);
    insert(checked(span_of(kernel_, fusion_.producer->arguments.back()->getSourceRange())).end,
           arguments);
  }

  std::string declaration(const clang::ParmVarDecl& parameter, const std::string& name) const {
    const Span token = checked(span_of(kernel_, clang::SourceRange(parameter.getLocation())));
    return render(kernel_, checked(span_of(kernel_, parameter.getSourceRange())),
                  {{token.begin, token.length(), name}});
  }

  std::string argument_text(const clang::Expr& argument) const {
    const auto producer = static_cast<std::size_t>(fusion_.producer - graph_.launches().data());
    return graph_.is_known_before(argument, producer) ? text_of(kernel_, argument)
                                                      : throw CannotWrite{};
  }

  void insert(unsigned offset, const std::string& text) {
    if (!text.empty()) {
      edits_.push_back({offset, 0, text});
    }
  }

  void move_launches() {
    std::string text;
    for (const std::size_t moved : fusion_.moved) {
      const Span span = checked(span_of(kernel_, *graph_.launches()[moved].call));
      text += render(kernel_, span) + "\n";
      remove_lines(span, false);
    }
    insert(checked(span_of(kernel_, *fusion_.producer->call)).begin, text);
  }

  /// A function from its first attribute on: __global__ is a macro.
  Span whole(const clang::FunctionDecl& function) const {
    const clang::SourceManager& sources = kernel_.ast().getSourceManager();
    Span span = checked(span_of(kernel_, function.getBody()->getSourceRange()));
    const auto start_at = [&](clang::SourceLocation begin) {
      const clang::SourceLocation written = sources.getExpansionLoc(begin);
      if (written.isValid() && sources.isInMainFile(written)) { // implicit attributes stand nowhere
        span.begin = std::min(span.begin, sources.getFileOffset(written));
      }
    };
    start_at(function.getBeginLoc());
    for (const clang::Attr* attribute : function.attrs()) {
      start_at(attribute->getLocation());
    }
    return span;
  }

  /// Removes a declaration or statement with its line, if it has one to itself, and the comment
  /// lines right above it.
  void remove_lines(Span span, bool with_comment) {
    const std::string& source = kernel_.source();
    const unsigned line = line_begin(kernel_, span.begin);
    if (source.find_first_not_of(" \t", line) == std::size_t{span.begin}) {
      span.begin = line;
    }
    while (with_comment && span.begin != 0) {
      const unsigned above = line_begin(kernel_, span.begin - 1);
      if (source.compare(above, 2, "//") != 0) {
        break;
      }
      span.begin = above;
    }
    if (span.end < source.size() && source[span.end] == '\n') {
      ++span.end;
    }
    removed_.push_back(span);
    edits_.push_back({span.begin, span.length(), ""});
  }

  /// Constants that nothing names but what goes with the consumer.
  void remove_constants() {
    const auto used = used_by_update();
    const std::vector<Span> removed = removed_;
    for (const clang::VarDecl* constant : scope_.constants) {
      const Span definition = checked(span_of(kernel_, constant->getSourceRange()));
      const auto uses = occurrences(kernel_.source(), constant->getNameAsString());
      const auto goes = [&](unsigned use) {
        return std::ranges::any_of(removed, [&](Span span) { return span.contains(use); });
      };
      const bool unneeded = std::ranges::any_of(uses, goes) && !used.contains(constant) &&
                            std::ranges::all_of(uses, [&](unsigned use) {
                              return definition.contains(use) || goes(use);
                            });
      const std::size_t end = kernel_.source().find_first_not_of(" \t\n", definition.end);
      if (unneeded && kernel_.source()[end] == ';') { // not one of several declared together
        remove_lines({definition.begin, static_cast<unsigned>(end) + 1}, false);
      }
    }
  }

  const Kernel& kernel_;
  const DependenceGraph& graph_;
  const Fusion& fusion_;
  FileScope scope_;
  std::map<const clang::ParmVarDecl*, std::string> parameters_;
  std::vector<Span> removed_;
  std::vector<Edit> edits_;
};

} // namespace

std::optional<std::vector<Edit>> fuse(const Kernel& kernel, const DependenceGraph& graph,
                                      const Fusion& fusion) {
  try {
    return Writer(kernel, graph, fusion).edits();
  } catch (const CannotWrite&) {
    return std::nullopt;
  }
}

} // namespace evo
