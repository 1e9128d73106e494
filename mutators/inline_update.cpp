#include "mutators/inline_update.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;
using Names = std::map<const clang::ValueDecl*, std::string>;

/// Ends a fusion that cannot be written down; never leaves this file.
struct CannotWrite {};

Span checked(std::optional<Span> span) {
  return span ? *span : throw CannotWrite{};
}

std::string text_of(const Kernel& kernel, const clang::Expr& expr) {
  return render(kernel, checked(span_of(kernel, expr.getSourceRange())));
}

Edit replacement(Span span, std::string text) {
  return {span.begin, span.length(), text};
}

// ---- names --------------------------------------------------------------------------------------

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

void add_declared(const clang::Stmt* statement, std::set<std::string>& names) {
  if (const auto* declaration = clang::dyn_cast_or_null<clang::DeclStmt>(statement)) {
    for (const clang::Decl* decl : declaration->decls()) {
      if (const auto* named = dyn_cast<clang::NamedDecl>(decl)) {
        names.insert(named->getNameAsString());
      }
    }
  }
}

/// The local names of the producer that code at a store sees or would collide with.
std::set<std::string> names_around(const ElementStore& store, const clang::FunctionDecl& function) {
  std::set<std::string> names;
  for (const clang::ParmVarDecl* parameter : function.parameters()) {
    names.insert(parameter->getNameAsString());
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

/// `name` if it is free, else the consumer's name before it, with a number if need be.
std::string fresh(const std::string& name, const std::string& prefix,
                  const std::set<std::string>& taken) {
  std::string candidate = name;
  for (int i = 1; taken.contains(candidate); ++i) {
    candidate = prefix + "_" + name + (i == 1 ? "" : "_" + std::to_string(i));
  }
  return candidate;
}

// ---- conditions ---------------------------------------------------------------------------------

/// The conditions that must all hold: a && b apart, !(a || b) too.
void split(const Condition& condition, std::vector<Condition>& all) {
  const clang::Expr* expr = condition.expression->IgnoreParenImpCasts();
  const auto* binary = dyn_cast<clang::BinaryOperator>(expr);
  const auto* unary = dyn_cast<clang::UnaryOperator>(expr);
  const auto both = condition.holds ? clang::BO_LAnd : clang::BO_LOr;
  if (binary != nullptr && binary->getOpcode() == both) {
    split({binary->getLHS(), condition.holds}, all);
    split({binary->getRHS(), condition.holds}, all);
  } else if (unary != nullptr && unary->getOpcode() == clang::UO_LNot) {
    split({unary->getSubExpr(), !condition.holds}, all);
  } else {
    all.push_back({expr, condition.holds});
  }
}

std::vector<Condition> split(const std::vector<Condition>& conditions) {
  std::vector<Condition> all;
  for (const Condition& condition : conditions) {
    split(condition, all);
  }
  return all;
}

std::string without_spaces(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\t'; });
  return text;
}

/// One text for a < b, b > a, !(a >= b) and !(b <= a). `edits` apply to the source first.
std::string normal_form(const Kernel& kernel, const Condition& condition,
                        const std::vector<Edit>& edits) {
  const auto side = [&](const clang::Expr* expr) {
    return without_spaces(render(kernel, checked(span_of(kernel, expr->getSourceRange())), edits));
  };
  const auto* comparison = dyn_cast<clang::BinaryOperator>(condition.expression);
  if (comparison == nullptr || !comparison->isComparisonOp() ||
      !comparison->getLHS()->getType()->isIntegerType()) {
    return (condition.holds ? "" : "!") + side(condition.expression);
  }
  auto opcode = comparison->getOpcode();
  if (!condition.holds) {
    opcode = clang::BinaryOperator::negateComparisonOp(opcode);
  }
  std::string left = side(comparison->getLHS());
  std::string right = side(comparison->getRHS());
  if (opcode == clang::BO_GT || opcode == clang::BO_GE) {
    opcode = clang::BinaryOperator::reverseComparisonOp(opcode);
    std::swap(left, right);
  }
  return left + clang::BinaryOperator::getOpcodeStr(opcode).str() + right;
}

// ---- the update at one store --------------------------------------------------------------------

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
  Inliner(const Kernel& kernel, const Fusion& fusion, const Names& parameters,
          const std::set<std::string>& file_names, const ElementStore& store)
      : kernel_(kernel), fusion_(fusion), update_(fusion.update), store_(store), names_(parameters),
        taken_(names_around(store, *fusion.producer->kernel)) {
    check_hidden();
    taken_.insert(file_names.begin(), file_names.end());
    for (const auto& [parameter, name] : parameters) {
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
  std::string fresh_name(const std::string& name) {
    std::string result = fresh(name, update_.kernel->getNameAsString(), taken_);
    taken_.insert(result);
    return result;
  }

  /// A local name of the producer must not hide what the update means by it.
  void check_hidden() {
    const UpdateVisitor check{.use = [&](const clang::DeclRefExpr& use) {
      const auto* variable = dyn_cast<clang::VarDecl>(use.getDecl());
      const bool global = variable == nullptr || !variable->isLocalVarDeclOrParm();
      if (global && taken_.contains(use.getDecl()->getNameAsString())) {
        throw CannotWrite{};
      }
    }};
    visit_all(check);
  }

  void visit_all(const UpdateVisitor& visitor) const {
    for (const clang::Stmt* statement : update_.statements) {
      visit(kernel_, update_, *statement, visitor);
    }
    for (const Condition& condition : update_.store.conditions) {
      visit(kernel_, update_, *condition.expression, visitor);
    }
    visit(kernel_, update_, *update_.store.assignment->getRHS(), visitor);
  }

  /// The producer's own variable where the coordinate is one of the same type, else a new one.
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
        fresh_name(named == nullptr ? default_name : named->getDecl()->getNameAsString());
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
      known->second = fresh_name(decl->getNameAsString());
    }
    return known->second;
  }

  /// The edits that make the update's code mean the producer's element.
  std::vector<Edit> substitution(const clang::Stmt& code) {
    std::vector<Edit> edits;
    const auto name = [&](clang::SourceLocation at, const clang::ValueDecl& decl) {
      const Span span = checked(span_of(kernel_, clang::SourceRange(at)));
      edits.push_back(replacement(span, name_of(&decl)));
    };
    visit(kernel_, update_, code,
          {.part =
               [&](const clang::Expr& expr, Part part) {
                 const Span span = checked(span_of(kernel_, expr.getSourceRange()));
                 edits.push_back(replacement(span, part == Part::Row      ? row_
                                                   : part == Part::Column ? column_
                                                                          : element_));
               },
           .use = [&](const clang::DeclRefExpr& use) { name(use.getLocation(), *use.getDecl()); },
           .local = [&](const clang::VarDecl& local) { name(local.getLocation(), local); }});
    return edits;
  }

  std::string rendered(const clang::Stmt& code) {
    Span span = checked(span_of(kernel_, code));
    const unsigned line = line_begin(kernel_, span.begin);
    const bool pragma = isa<clang::AttributedStmt>(code);
    span.begin = pragma ? line : span.begin;
    return render(kernel_, span, substitution(code));
  }

  std::string rendered_expression(const clang::Expr& expr) {
    return render(kernel_, checked(span_of(kernel_, expr.getSourceRange())), substitution(expr));
  }

  std::vector<Condition> kept_conditions() {
    std::set<std::string> implied;
    for (const Condition& condition : split(store_.conditions)) {
      implied.insert(normal_form(kernel_, condition, {}));
    }
    std::vector<Condition> kept = split(update_.store.conditions);
    std::erase_if(kept, [&](const Condition& condition) {
      return implied.contains(normal_form(kernel_, condition, substitution(*condition.expression)));
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
    const std::string value = fresh_name("value");
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

  /// Not where the code has the braces around it to itself.
  bool needs_braces(const std::vector<Condition>& kept) const {
    const clang::Stmt* around = store_.around.front();
    const auto in_these = std::ranges::count_if(
        fusion_.stores, [&](const ElementStore& other) { return other.around.front() == around; });
    const bool one_statement = update_.statements.empty() && definitions_.empty() && kept.empty();
    return !one_statement && (!isa<clang::CompoundStmt>(around) || in_these > 1);
  }

  const Kernel& kernel_;
  const Fusion& fusion_;
  const ElementwiseUpdate& update_;
  const ElementStore& store_;
  Names names_;
  std::set<std::string> taken_;
  std::string definitions_;
  std::string row_;
  std::string column_;
  std::string element_;
};

// ---- the file around it -------------------------------------------------------------------------

class FileScope : public clang::RecursiveASTVisitor<FileScope> {
public:
  explicit FileScope(const Kernel& kernel) : kernel_(kernel) {}

  bool VisitDeclRefExpr(clang::DeclRefExpr* use) {
    const auto* variable = dyn_cast<clang::VarDecl>(use->getDecl());
    if (variable != nullptr && variable->isFileVarDecl()) {
      uses[variable].push_back(kernel_.ast().getSourceManager().getFileOffset(use->getLocation()));
    }
    return true;
  }
  bool VisitNamedDecl(clang::NamedDecl* decl) {
    if (decl->getDeclContext()->isFileContext() &&
        kernel_.ast().getSourceManager().isInMainFile(decl->getLocation())) {
      names.insert(decl->getNameAsString());
      const auto* variable = dyn_cast<clang::VarDecl>(decl);
      if (variable != nullptr && variable->isConstexpr()) {
        constants.push_back(variable);
      }
    }
    return true;
  }

  std::set<std::string> names;
  std::vector<const clang::VarDecl*> constants;
  std::map<const clang::VarDecl*, std::vector<unsigned>> uses;

private:
  const Kernel& kernel_;
};

class Writer {
public:
  Writer(const Kernel& kernel, const DependenceGraph& graph, const Fusion& fusion)
      : kernel_(kernel), graph_(graph), fusion_(fusion), scope_(kernel) {
    scope_.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  }

  std::vector<Edit> edits() {
    add_parameters();
    for (const ElementStore& store : fusion_.stores) {
      Inliner inliner(kernel_, fusion_, parameters_, scope_.names, store);
      edits_.push_back(replacement(checked(span_of(kernel_, *store.assignment)), inliner.text()));
    }
    move_launches();
    remove_lines(whole(*fusion_.update.kernel), true);
    remove_lines(checked(span_of(kernel_, *fusion_.consumer->call)), false);
    remove_constants();
    sort_edits(edits_);
    return std::move(edits_);
  }

private:
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
    const ElementwiseUpdate& update = fusion_.update;
    const UpdateVisitor note{
        .use = [&](const clang::DeclRefExpr& use) { used.insert(use.getDecl()); }};
    for (const clang::Stmt* statement : update.statements) {
      visit(kernel_, update, *statement, note);
    }
    for (const Condition& condition : update.store.conditions) {
      visit(kernel_, update, *condition.expression, note);
    }
    visit(kernel_, update, *update.store.assignment->getRHS(), note);
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
      if (!graph_.is_known_before(*argument, index_of(fusion_.producer))) {
        throw CannotWrite{};
      }
      const std::string name =
          fresh(parameter->getNameAsString(), fusion_.update.kernel->getNameAsString(), taken);
      taken.insert(name);
      parameters_[parameter] = name;
      const Span token = checked(span_of(kernel_, clang::SourceRange(parameter->getLocation())));
      declarations += ", " + render(kernel_, checked(span_of(kernel_, parameter->getSourceRange())),
                                    {replacement(token, name)});
      arguments += ", " + text_of(kernel_, *argument);
    }
    const clang::ParmVarDecl* last = producer.parameters().back();
    insert(checked(span_of(kernel_, last->getSourceRange())).end, declarations);
    insert(checked(span_of(kernel_, fusion_.producer->arguments.back()->getSourceRange())).end,
           arguments);
  }

  void insert(unsigned offset, const std::string& text) {
    if (!text.empty()) {
      edits_.push_back({offset, 0, text});
    }
  }

  std::size_t index_of(const Launch* launch) const {
    return static_cast<std::size_t>(launch - graph_.launches().data());
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

  /// Removes a declaration or statement with its line, and the comment lines right above it.
  void remove_lines(Span span, bool with_comment) {
    const std::string& source = kernel_.source();
    span.begin = line_begin(kernel_, span.begin);
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
    edits_.push_back(replacement(span, ""));
  }

  /// Constants whose every use went with the consumer.
  void remove_constants() {
    const auto used = used_by_update();
    const std::vector<Span> removed = removed_;
    for (const clang::VarDecl* constant : scope_.constants) {
      const std::vector<unsigned>& uses = scope_.uses[constant];
      const bool gone = std::ranges::all_of(uses, [&](unsigned use) {
        return std::ranges::any_of(removed, [&](Span span) { return span.contains(use); });
      });
      if (uses.empty() || !gone || used.contains(constant)) {
        continue;
      }
      Span span = checked(span_of(kernel_, constant->getSourceRange()));
      const std::size_t semicolon = kernel_.source().find_first_not_of(" \t\n", span.end);
      if (kernel_.source()[semicolon] == ';') { // not one of several declared together
        remove_lines({span.begin, static_cast<unsigned>(semicolon) + 1}, false);
      }
    }
  }

  const Kernel& kernel_;
  const DependenceGraph& graph_;
  const Fusion& fusion_;
  FileScope scope_;
  Names parameters_;
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
