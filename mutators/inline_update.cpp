#include "mutators/inline_update.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/conditions.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

/// Adds a name that is visible at a store; one that hides another would make texts ambiguous.
void add_name(const std::string& name, std::set<std::string>& names) {
  if (!names.insert(name).second) {
    throw CannotWrite{};
  }
}

void add_declared(const clang::Stmt* statement, std::set<std::string>& names) {
  if (const auto* declaration = clang::dyn_cast_or_null<clang::DeclStmt>(statement)) {
    for (const clang::Decl* decl : declaration->decls()) {
      if (const auto* named = dyn_cast<clang::NamedDecl>(decl)) {
        add_name(named->getNameAsString(), names);
      }
    }
  }
}

/// The local names that code at a store sees or would collide with.
std::set<std::string> names_around(const ElementStore& store, const clang::FunctionDecl& kernel) {
  std::set<std::string> names;
  for (const clang::ParmVarDecl* parameter : kernel.parameters()) {
    add_name(parameter->getNameAsString(), names);
  }
  for (const clang::Stmt* around : store.around) {
    if (const auto* loop = dyn_cast<clang::ForStmt>(around)) {
      add_declared(loop->getInit(), names);
    } else if (const auto* braces = dyn_cast<clang::CompoundStmt>(around)) {
      for (const clang::Stmt* statement : braces->body()) {
        add_declared(statement, names);
      }
    }
  }
  return names;
}

/// The text of an operand, in parentheses where an operator in it could bind to what stands beside
/// it. A product needs none in a sum.
std::string operand(const clang::Expr& expr, const std::string& text, bool in_sum) {
  const clang::Expr* bare = expr.IgnoreImpCasts();
  const auto* binary = dyn_cast<clang::BinaryOperator>(bare);
  const bool loose = binary != nullptr && !(in_sum && binary->isMultiplicativeOp());
  return loose || isa<clang::ConditionalOperator>(bare) ? "(" + text + ")" : text;
}

class Inliner {
public:
  Inliner(const Kernel& kernel, const ElementwiseUpdate& update, const InlineSite& site)
      : kernel_(kernel), update_(update), site_(site), store_(site.store),
        names_(site.parameters.begin(), site.parameters.end()),
        taken_(names_around(site.store, site.kernel)) {
    check_hidden();
    taken_.insert(site.file_names.begin(), site.file_names.end());
    for (const auto& [parameter, name] : site.parameters) {
      taken_.insert(name);
    }
  }

  /// What stands instead of the producer's store.
  std::string text() {
    row_ = coordinate(*update_.row(), {store_.index.row}, "row");
    column_ = coordinate(*update_.column(), store_.index.column, "column");
    const std::vector<Condition> kept = kept_conditions();
    const clang::Expr* value = store_.assignment->getRHS();
    element_ = operand(*value, text_of(kernel_, *value), false);
    std::string body =
        kept.empty() ? update_text(text_of(kernel_, *store_.element)) : guarded_text(kept);
    return needs_braces(kept) ? "{\n" + definitions_ + body + "}\n" : definitions_ + body;
  }

private:
  std::string unused_name(const std::string& name) {
    std::string result = fresh_name(name, update_.kernel->getNameAsString(), taken_);
    taken_.insert(result);
    return result;
  }

  /// A local name here must not hide what the update means by it.
  void check_hidden() const {
    visit(kernel_, update_, {.use = [&](const clang::DeclRefExpr& use) {
            const auto* variable = dyn_cast<clang::VarDecl>(use.getDecl());
            const bool global = variable == nullptr || !variable->isLocalVarDeclOrParm();
            if (global && taken_.contains(use.getDecl()->getNameAsString())) {
              throw CannotWrite{};
            }
          }});
  }

  /// The variable that is the coordinate here, if it has the same type, else a new one.
  std::string coordinate(const clang::Expr& wanted, const std::vector<const clang::Expr*>& summands,
                         const std::string& default_name) {
    const clang::QualType type = wanted.getType().getUnqualifiedType();
    const auto* use = dyn_cast<clang::DeclRefExpr>(summands.front());
    if (summands.size() == 1 && use != nullptr &&
        kernel_.ast().hasSameUnqualifiedType(use->getType(), type)) {
      return use->getDecl()->getNameAsString();
    }
    const auto* named = dyn_cast<clang::DeclRefExpr>(&wanted);
    const std::string name =
        unused_name(named == nullptr ? default_name : named->getDecl()->getNameAsString());
    std::string sum;
    for (const clang::Expr* summand : summands) {
      const std::string text = text_of(kernel_, *summand);
      sum += (sum.empty() ? "" : " + ") +
             (summands.size() == 1 ? text : operand(*summand, text, true));
    }
    definitions_ += "const " + type.getAsString() + " " + name + " = " + sum + ";\n";
    return name;
  }

  std::string name_of(const clang::ValueDecl* decl) {
    const auto* variable = dyn_cast<clang::VarDecl>(decl);
    if (variable == nullptr || !variable->isLocalVarDeclOrParm()) {
      return decl->getNameAsString();
    }
    const auto [known, is_new] = names_.emplace(decl, "");
    if (is_new) {
      known->second = unused_name(decl->getNameAsString());
    }
    return known->second;
  }

  const std::string& text_for(Part part) const {
    return part == Part::Row ? row_ : part == Part::Column ? column_ : element_;
  }

  /// The edits that make the update's code mean the element here.
  std::vector<Edit> substitution(const clang::Stmt& code) {
    std::vector<Edit> edits;
    const auto name = [&](clang::SourceLocation at, const clang::ValueDecl& decl) {
      const Span span = checked(span_of(kernel_, clang::SourceRange(at)));
      edits.push_back({span.begin, span.length(), name_of(&decl)});
    };
    visit(kernel_, update_, code,
          {.part =
               [&](const clang::Expr& expr, Part part) {
                 const Span span = checked(span_of(kernel_, expr.getSourceRange()));
                 edits.push_back({span.begin, span.length(), text_for(part)});
               },
           .use = [&](const clang::DeclRefExpr& use) { name(use.getLocation(), *use.getDecl()); },
           .local = [&](const clang::VarDecl& local) { name(local.getLocation(), local); }});
    return edits;
  }

  std::string rendered(const clang::Stmt& code) {
    Span span = checked(span_of(kernel_, code));
    if (isa<clang::AttributedStmt>(code)) { // it begins behind the `#` of its pragma
      span.begin = line_begin(kernel_, span.begin);
    }
    return render(kernel_, span, substitution(code));
  }

  std::string rendered_expression(const clang::Expr& expr) {
    return render(kernel_, checked(span_of(kernel_, expr.getSourceRange())), substitution(expr));
  }

  std::vector<Condition> kept_conditions() {
    std::set<std::string> implied;
    for (const Condition& condition : conjuncts(store_.conditions)) {
      implied.insert(normal_form(kernel_, condition, {}).value_or(""));
    }
    std::vector<Condition> kept = conjuncts(update_.store.conditions);
    std::erase_if(kept, [&](const Condition& condition) {
      const auto text = normal_form(kernel_, condition, substitution(*condition.expression));
      return text && implied.contains(*text);
    });
    return kept;
  }

  /// The update's statements, then the new value stored to `place`.
  std::string update_text(const std::string& place) {
    std::string text;
    for (const clang::Stmt* statement : update_.statements) {
      text += rendered(*statement) + "\n";
    }
    const clang::BinaryOperator& assignment = *update_.store.assignment;
    const std::string value = rendered_expression(*assignment.getRHS());
    if (!assignment.isCompoundAssignmentOp()) {
      return text + place + " = " + value + ";\n";
    }
    const auto opcode = clang::BinaryOperator::getOpForCompoundAssignment(assignment.getOpcode());
    const bool in_sum = opcode == clang::BO_Add || opcode == clang::BO_Sub;
    return text + place + " = " + element_ + " " +
           clang::BinaryOperator::getOpcodeStr(opcode).str() + " " +
           operand(*assignment.getRHS(), value, in_sum) + ";\n";
  }

  /// Where only some elements are updated: the old value stays for the others.
  std::string guarded_text(const std::vector<Condition>& kept) {
    const std::string value = unused_name("value");
    const std::string type = store_.element->getType().getUnqualifiedType().getAsString();
    std::string text = type + " " + value + " = " + element_ + ";\n";
    element_ = value;
    std::string condition;
    for (const Condition& part : kept) {
      const std::string one = "(" + rendered_expression(*part.expression) + ")";
      condition += (condition.empty() ? "" : " && ") + std::string(part.holds ? "" : "!") + one;
    }
    const bool is_one = kept.size() == 1 && kept.front().holds;
    text +=
        "if " + (is_one ? condition : "(" + condition + ")") + " {\n" + update_text(value) + "}\n";
    return text + text_of(kernel_, *store_.element) + " = " + value + ";\n";
  }

  bool needs_braces(const std::vector<Condition>& kept) const {
    const bool one_statement = update_.statements.empty() && definitions_.empty() && kept.empty();
    const bool has_braces = site_.in_own_braces && isa<clang::CompoundStmt>(store_.around.front());
    return !one_statement && !has_braces;
  }

  const Kernel& kernel_;
  const ElementwiseUpdate& update_;
  const InlineSite& site_;
  const ElementStore& store_;
  std::map<const clang::ValueDecl*, std::string> names_;
  std::set<std::string> taken_;
  std::string definitions_; // of coordinates
  std::string row_;
  std::string column_;
  std::string element_; // the old value
};

} // namespace

Span checked(std::optional<Span> span) {
  return span ? *span : throw CannotWrite{};
}

std::string text_of(const Kernel& kernel, const clang::Expr& expr) {
  return render(kernel, checked(span_of(kernel, expr.getSourceRange())));
}

std::string declaration(const Kernel& kernel, const clang::ParmVarDecl& parameter,
                        const std::string& name) {
  const Span token = checked(span_of(kernel, clang::SourceRange(parameter.getLocation())));
  return render(kernel, checked(span_of(kernel, parameter.getSourceRange())),
                {{token.begin, token.length(), name}});
}

std::string fresh_name(const std::string& name, const std::string& prefix,
                       const std::set<std::string>& taken) {
  std::string candidate = name;
  for (int i = 1; taken.contains(candidate); ++i) {
    candidate = prefix + "_" + name + (i == 1 ? "" : "_" + std::to_string(i));
  }
  return candidate;
}

std::string inlined_update(const Kernel& kernel, const ElementwiseUpdate& update,
                           const InlineSite& site) {
  return Inliner(kernel, update, site).text();
}

} // namespace evo
