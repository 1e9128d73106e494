#include "mutators/fusion.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/names.hpp"
#include "mutators/removal.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

class FusionWriter {
public:
  FusionWriter(const Kernel& kernel, const DependenceGraph& graph, const Fusion& fusion)
      : kernel_(kernel), graph_(graph), fusion_(fusion), removal_(kernel) {}

  std::vector<Edit> edits() {
    add_parameters();
    const std::set<std::string> file_names = names_at_file_scope(kernel_);
    for (const ElementStore& store : fusion_.stores) {
      const Span span = checked(span_of(kernel_, *store.assignment));
      edits_.push_back({span.begin, span.length(),
                        inlined_update(kernel_, fusion_.update,
                                       {.store = store,
                                        .kernel = *fusion_.producer->kernel,
                                        .in_own_braces = is_alone_in_braces(store),
                                        .parameters = parameters_,
                                        .file_names = file_names})});
    }
    move_launches();
    removal_.function(*fusion_.update.kernel);
    removal_.statement(*fusion_.consumer->call);
    removal_.unneeded_declarations(used_by_update());
    edits_.insert(edits_.end(), removal_.edits().begin(), removal_.edits().end());
    sort_edits(edits_);
    return std::move(edits_);
  }

private:
  bool is_alone_in_braces(const ElementStore& store) const {
    return std::ranges::count_if(fusion_.stores, [&](const ElementStore& other) {
             return other.around.front() == store.around.front();
           }) == 1;
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
      if (const auto* same = parameter_given(kernel_, *fusion_.producer, argument, *parameter)) {
        parameters_[parameter] = same->getNameAsString();
        continue;
      }
      const std::string name =
          fresh_name(parameter->getNameAsString(), fusion_.update.kernel->getNameAsString(), taken);
      taken.insert(name);
      parameters_[parameter] = name;
      declarations += ", " + declaration(kernel_, *parameter, name);
      arguments += ", " + argument_text(*argument);
    }
    const clang::ParmVarDecl* last = producer.parameters().back();
    insert(checked(span_of(kernel_, last->getSourceRange())).end, declarations);
    insert(checked(span_of(kernel_, fusion_.producer->arguments.back()->getSourceRange())).end,
           arguments);
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
      removal_.statement(*graph_.launches()[moved].call);
    }
    insert(checked(span_of(kernel_, *fusion_.producer->call)).begin, text);
  }

  const Kernel& kernel_;
  const DependenceGraph& graph_;
  const Fusion& fusion_;
  std::map<const clang::ParmVarDecl*, std::string> parameters_;
  Removal removal_;
  std::vector<Edit> edits_;
};

} // namespace

std::optional<std::vector<Edit>> fuse(const Kernel& kernel, const DependenceGraph& graph,
                                      const Fusion& fusion) {
  try {
    return FusionWriter(kernel, graph, fusion).edits();
  } catch (const CannotWrite&) {
    return std::nullopt;
  }
}

} // namespace evo
