#include "mutators/element_function.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>
#include <llvm/ADT/StringExtras.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/loop_nest.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::int64_t longest_fragment = 64;

/// The elements that every run of an expression reads.
class Reads : public SyntaxVisitor {
public:
  bool TraverseConditionalOperator(clang::ConditionalOperator*) override { return true; }
  bool TraverseCallExpr(clang::CallExpr*) override { return true; }
  bool VisitArraySubscriptExpr(clang::ArraySubscriptExpr* element) override {
    list.push_back(element);
    return true;
  }

  std::vector<const clang::ArraySubscriptExpr*> list;
};

/// place = element: where it goes is an array already. No expression counts as one too.
bool is_copy(const clang::Stmt& statement) {
  const auto* assignment = dyn_cast<clang::BinaryOperator>(&statement);
  return assignment == nullptr ||
         (assignment->getOpcode() == clang::BO_Assign &&
          clang::isa<clang::ArraySubscriptExpr>(assignment->getRHS()->IgnoreParenImpCasts()));
}

std::string type_of(const clang::Expr& expr) {
  return expr.getType().getUnqualifiedType().getAsString();
}

} // namespace

ElementFunction::ElementFunction(const Kernel& kernel, const ElementValue& value, Names& names)
    : kernel_(kernel), value_(value), code_(value.code), names_(names),
      name_(names.fresh(code_.array->getNameAsString() + "_at")) {
  const auto coordinate = [&](const clang::Expr& expr, const std::string& otherwise) {
    const clang::VarDecl* variable = variable_of(&expr);
    return variable != nullptr ? variable->getNameAsString()
                               : names.fresh(code_.array->getNameAsString() + otherwise);
  };
  own_ = {.row = coordinate(*code_.row(), "_row"),
          .column = coordinate(*code_.column(), "_col"),
          .old = names.fresh("old")};
  for (const clang::Stmt* statement : code_.statements) {
    pieces_.push_back({statement});
  }
  visit(kernel_, code_,
        {.use = [&](const clang::DeclRefExpr& use) { used_.insert(use.getDecl()); }});
}

// ---- fragments and what is hoisted
// ----------------------------------------------------------------

void ElementFunction::hoist(const std::set<Part>& varying) {
  const std::vector<Piece> whole = std::move(pieces_);
  pieces_.clear();
  for (const Piece& piece : whole) {
    add_fragments(*piece.statement);
    pieces_.push_back(piece);
  }
  std::set<const clang::ValueDecl*> variables; // that vary
  std::set<const Fragment*> fragments;
  const auto meets = [](const auto& a, const auto& b) {
    return std::ranges::any_of(a, [&](const auto& one) { return b.contains(one); });
  };
  const auto varies = [&](const Needs& needs) {
    return meets(needs.parts, varying) || meets(needs.used, variables) ||
           meets(needs.defined, variables) || meets(needs.fragments, fragments);
  };
  for (std::size_t known = pieces_.size() + 1; known != 0;) { // until nothing is new
    const std::size_t before = variables.size() + fragments.size();
    for (Piece& piece : pieces_) {
      const Needs needs = needs_of(piece);
      piece.varies = varies(needs);
      if (piece.varies) {
        variables.insert(needs.defined.begin(), needs.defined.end());
      }
      if (piece.varies && piece.fragment != nullptr) {
        fragments.insert(piece.fragment);
      }
    }
    known = variables.size() + fragments.size() - before;
  }
}

/// For what a loop of the kernel's reads once in each round.
void ElementFunction::add_fragments(const clang::Stmt& statement) {
  const auto* loop = dyn_cast<clang::ForStmt>(&statement);
  const auto counted = loop == nullptr ? std::nullopt : counted_loop(kernel_, *loop);
  const auto trips = counted ? trip_count(kernel_, *counted) : std::nullopt;
  const clang::Stmt* body = loop == nullptr ? nullptr : only_statement(loop->getBody());
  if (!trips || *trips > longest_fragment || counted->step_value != 1 ||
      constant_value(kernel_, *counted->start) != 0 || is_copy(*body)) {
    return;
  }
  Reads reads;
  reads.TraverseStmt(const_cast<clang::Stmt*>(body));
  for (const clang::ArraySubscriptExpr* read : reads.list) {
    const clang::VarDecl* array = variable_of(read->getBase());
    const Needs needs = needs_of(*read->getIdx());
    const bool local_index = std::ranges::any_of(needs.used, [&](const clang::ValueDecl* used) {
      const auto* variable = dyn_cast<clang::VarDecl>(used);
      return variable != nullptr && variable->isLocalVarDecl() && variable != counted->counter;
    });
    if (array != nullptr && clang::isa<clang::ParmVarDecl>(array) && array != value_.old &&
        needs.used.contains(counted->counter) && !local_index) {
      fragments_.push_back(std::make_unique<Fragment>(
          Fragment{.read = read,
                   .loop = loop,
                   .counter = counted->counter,
                   .extent = counted->limit,
                   .name = names_.fresh(array->getNameAsString() + "_fragment")}));
      pieces_.push_back({.fragment = fragments_.back().get()});
    }
  }
}

const ElementFunction::Fragment* ElementFunction::fragment_of(const clang::Expr& expr) const {
  const auto found = std::ranges::find_if(
      fragments_, [&](const auto& fragment) { return fragment->read == &expr; });
  return found == fragments_.end() ? nullptr : found->get();
}

ElementFunction::Needs ElementFunction::needs_of(const Piece& piece) const {
  if (piece.fragment == nullptr) {
    return needs_of(*piece.statement);
  }
  Needs needs = needs_of(*piece.fragment->read->getIdx());
  needs.used.insert(variable_of(piece.fragment->read->getBase()));
  needs.used.erase(piece.fragment->counter);
  return needs;
}

ElementFunction::Needs ElementFunction::needs_of(const clang::Stmt& code) const {
  Needs needs;
  visit(kernel_, code_, code,
        {.skip =
             [&](const clang::Expr& expr) {
               const Fragment* fragment = fragment_of(expr);
               if (fragment != nullptr) {
                 needs.fragments.insert(fragment);
               }
               return fragment != nullptr;
             },
         .part = [&](const clang::Expr&, Part part) { needs.parts.insert(part); },
         .use = [&](const clang::DeclRefExpr& use) { needs.used.insert(use.getDecl()); },
         .local = [&](const clang::VarDecl& local) { needs.defined.insert(&local); }});
  for (const MemoryAccess& access : accesses_of(code).list) {
    if (access.writes && access.memory.variable != nullptr) {
      needs.defined.insert(access.memory.variable);
    }
  }
  return needs;
}

/// Of all that is in the function.
ElementFunction::Needs ElementFunction::needs_of_function() const {
  Needs all = needs_of(*code_.store.assignment->getRHS());
  for (const Piece& piece : pieces_) {
    if (piece.varies) {
      const Needs needs = needs_of(piece);
      all.parts.insert(needs.parts.begin(), needs.parts.end());
      all.used.insert(needs.used.begin(), needs.used.end());
      all.fragments.insert(needs.fragments.begin(), needs.fragments.end());
    }
  }
  return all;
}

std::vector<ElementFunction::Shared> ElementFunction::shared() const {
  const Needs needs = needs_of_function();
  std::vector<Shared> result;
  const auto add = [&](const std::string& type, const std::string& name,
                       const std::string& extent) {
    result.push_back(
        {"const " + type + (extent.empty() ? " " + name : " (&" + name + ")[" + extent + "]"),
         name});
  };
  for (const Piece& piece : pieces_) {
    if (piece.varies) {
      continue;
    }
    if (piece.fragment != nullptr && needs.fragments.contains(piece.fragment)) {
      add(type_of(*piece.fragment->read), piece.fragment->name,
          text_of(kernel_, *piece.fragment->extent));
    }
    const auto* definition = clang::dyn_cast_or_null<clang::DeclStmt>(piece.statement);
    if (definition == nullptr) {
      continue;
    }
    for (const clang::Decl* decl : definition->decls()) {
      const auto& variable = present(dyn_cast<clang::VarDecl>(decl));
      if (!needs.used.contains(&variable)) {
        continue;
      }
      const clang::QualType type = variable.getType();
      const auto extents = written_extents(variable);
      if (type->isReferenceType() || type->isPointerType() ||
          (type->isArrayType() && extents.size() != 1)) {
        throw CannotWrite{};
      }
      const clang::QualType element =
          type->isArrayType() ? kernel_.ast().getBaseElementType(type) : type;
      add(element.getUnqualifiedType().getAsString(), variable.getNameAsString(),
          type->isArrayType() ? text_of(kernel_, *extents.front()) : "");
    }
  }
  return result;
}

// ---- texts --------------------------------------------------------------------------------------

std::vector<const clang::ParmVarDecl*> ElementFunction::parameters_of_value() const {
  std::vector<const clang::ParmVarDecl*> result;
  std::ranges::copy_if(
      code_.kernel->parameters(), std::back_inserter(result),
      [&](const auto* parameter) { return used_.contains(parameter) || parameter == value_.old; });
  return result;
}

std::string ElementFunction::definition() const {
  const Needs needs = needs_of_function();
  std::vector<std::string> parameters;
  for (const clang::ParmVarDecl* parameter : code_.kernel->parameters()) {
    if (needs.used.contains(parameter)) {
      parameters.push_back(declaration(kernel_, *parameter, parameter->getNameAsString()));
    }
  }
  for (const Shared& one : shared()) {
    parameters.push_back(one.declaration);
  }
  const auto add = [&](Part part, const clang::Expr& typed, const std::string& name) {
    if (needs.parts.contains(part)) {
      parameters.push_back(type_of(typed) + " " + name);
    }
  };
  add(Part::Row, *code_.row(), own_.row);
  add(Part::Column, *code_.column(), own_.column);
  add(Part::Element, *code_.store.element, own_.old);
  std::string result = "// An element of " + code_.array->getNameAsString() +
                       ", computed where it is needed.\n__device__ __forceinline__ " +
                       type_of(*code_.store.element) + " " + name_ + "(" +
                       llvm::join(parameters, ", ") + ") {\n";
  for (const Piece& piece : pieces_) {
    result += piece.varies ? text(piece, {own_}) : "";
  }
  return result + "return " + text(*code_.store.assignment->getRHS(), {own_}) + ";\n}\n\n";
}

std::string ElementFunction::call(const ElementPlace& place, const ParameterNames& names) const {
  const Needs needs = needs_of_function();
  std::vector<std::string> arguments;
  for (const clang::ParmVarDecl* parameter : code_.kernel->parameters()) {
    if (needs.used.contains(parameter)) {
      arguments.push_back(names.at(parameter));
    }
  }
  for (const Shared& one : shared()) {
    arguments.push_back(one.name);
  }
  for (const auto& [part, argument] :
       {std::pair(Part::Row, place.row), std::pair(Part::Column, place.column),
        std::pair(Part::Element, place.old)}) {
    if (needs.parts.contains(part)) {
      arguments.push_back(argument);
    }
  }
  return name_ + "(" + llvm::join(arguments, ", ") + ")";
}

std::string ElementFunction::hoisted(const ElementPlace& place, const ParameterNames& names,
                                     const std::set<std::string>& taken) const {
  std::string result;
  for (const Piece& piece : pieces_) {
    if (piece.varies) {
      continue;
    }
    for (const clang::ValueDecl* defined : needs_of(piece).defined) {
      if (taken.contains(defined->getNameAsString())) {
        throw CannotWrite{};
      }
    }
    result += text(piece, {place, &names});
  }
  return result;
}

std::string ElementFunction::text(const Piece& piece, const Scope& scope) const {
  if (piece.fragment == nullptr) {
    return text(*piece.statement, scope) + "\n";
  }
  const Fragment& fragment = *piece.fragment;
  const Span loop = checked(span_of(kernel_, *fragment.loop));
  const Span body = checked(span_of(kernel_, *fragment.loop->getBody()));
  const clang::Expr& base = *fragment.read->getBase()->IgnoreParenImpCasts();
  return type_of(*fragment.read) + " " + fragment.name + "[" + text_of(kernel_, *fragment.extent) +
         "];\n" + render(kernel_, {loop.begin, body.begin}) + "{\n" + fragment.name + "[" +
         fragment.counter->getNameAsString() + "] = " + text(base, scope) + "[" +
         text(*fragment.read->getIdx(), scope) + "];\n}\n";
}

/// The kernel's code, in the names of another place.
std::string ElementFunction::text(const clang::Stmt& code, const Scope& scope) const {
  std::vector<Edit> edits;
  const auto replace = [&](clang::SourceRange range, const std::string& by) {
    const Span span = checked(span_of(kernel_, range));
    edits.push_back({span.begin, span.length(), by});
  };
  visit(kernel_, code_, code,
        {.skip =
             [&](const clang::Expr& expr) {
               const Fragment* fragment = fragment_of(expr);
               if (fragment != nullptr) {
                 replace(expr.getSourceRange(),
                         fragment->name + "[" + fragment->counter->getNameAsString() + "]");
               }
               return fragment != nullptr;
             },
         .part =
             [&](const clang::Expr& expr, Part part) {
               const std::string& by = part == Part::Row      ? scope.place.row
                                       : part == Part::Column ? scope.place.column
                                                              : scope.place.old;
               const bool is_name = by.find_first_of(" []().->") == std::string::npos;
               replace(expr.getSourceRange(), is_name ? by : "(" + by + ")");
             },
         .use =
             [&](const clang::DeclRefExpr& use) {
               const auto* parameter = dyn_cast<clang::ParmVarDecl>(use.getDecl());
               const auto named = scope.names == nullptr ? ParameterNames::const_iterator{}
                                                         : scope.names->find(parameter);
               if (scope.names != nullptr && named != scope.names->end()) {
                 replace(use.getLocation(), named->second);
               }
             }});
  if (const auto* expr = dyn_cast<clang::Expr>(&code); expr != nullptr && !is_statement(*expr)) {
    return render(kernel_, checked(span_of(kernel_, expr->getSourceRange())), edits);
  }
  Span span = checked(span_of(kernel_, code));
  if (clang::isa<clang::AttributedStmt>(code)) { // it begins behind the `#` of its pragma
    span.begin = line_begin(kernel_, span.begin);
  }
  return render(kernel_, span, edits);
}

bool ElementFunction::is_statement(const clang::Expr& expr) const {
  return std::ranges::find(code_.statements, &expr) != code_.statements.end();
}

} // namespace evo
