#include "mutators/register_staging.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/thread_range.hpp"
#include "mutators/copy_source.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

/// place = value
struct WrittenAssignment {
  const clang::Stmt* statement = nullptr;
  const clang::Expr* place = nullptr;
  const clang::Expr* value = nullptr;
  bool compound = false;
};

std::optional<WrittenAssignment> assignment(const clang::Stmt* statement) {
  if (const auto* cleanups = dyn_cast<clang::ExprWithCleanups>(statement)) {
    statement = cleanups->getSubExpr();
  }
  const auto* binary = dyn_cast<clang::BinaryOperator>(statement);
  if (binary != nullptr && binary->isAssignmentOp()) {
    return WrittenAssignment{binary, binary->getLHS(), binary->getRHS(),
                             binary->isCompoundAssignmentOp()};
  }
  const auto* call = dyn_cast<clang::CXXOperatorCallExpr>(statement);
  if (call != nullptr && call->getOperator() == clang::OO_Equal && call->getNumArgs() == 2) {
    return WrittenAssignment{call, call->getArg(0), call->getArg(1)};
  }
  return std::nullopt;
}

std::vector<const clang::VarDecl*> variables_in(const clang::DeclStmt* definition) {
  std::vector<const clang::VarDecl*> variables;
  for (const clang::Decl* decl : definition->decls()) {
    if (const auto* variable = dyn_cast<clang::VarDecl>(decl)) {
      variables.push_back(variable);
    }
  }
  return variables;
}

void add_mentioned(const clang::Stmt* statement, std::set<const clang::VarDecl*>& variables) {
  if (statement == nullptr) {
    return;
  }
  if (const auto* reference = dyn_cast<clang::DeclRefExpr>(statement)) {
    if (const auto* variable = dyn_cast<clang::VarDecl>(reference->getDecl())) {
      variables.insert(variable);
    }
  }
  for (const clang::Stmt* child : statement->children()) {
    add_mentioned(child, variables);
  }
}

/// A loop around an assignment to shared memory.
struct StagedLoop {
  CountedLoop counted;
  bool by_thread = false; // its start depends on the thread: it is printed with a counter of steps
  bool guarded = false;   // a thread may have fewer steps than `count`
  std::string count;      // steps; empty until an assignment needs it
  std::string index;      // of the current step
};

/// An assignment to shared memory, and the registers between its halves.
struct StagingSite {
  WrittenAssignment assignment;
  Memory tile;
  std::string slot;                 // "w_next[step]"
  std::optional<CopySource> source; // if it can be an asynchronous copy
  bool copied = false;              // it is one
};

/// What is printed of the loads: of those through registers, one of their halves or both at once;
/// of the others, asynchronous copies.
enum class Form { Fetch, Store, Assign, Copy };

class LoadSplitter {
public:
  LoadSplitter(const Kernel& kernel, const Stages& stages, Names& names)
      : kernel_(kernel), stages_(stages), names_(names) {}

  bool analyse(const StagePart& part);
  /// Whether an assignment to the tile does more than copying.
  bool computes(const Memory& tile) const;
  /// From now on the loads of other tiles are copies; false if one is not.
  bool copy_except(const std::vector<Memory>& in_registers);
  std::string print(const std::vector<const StagePart*>& parts, const std::vector<Edit>& edits,
                    Form form);
  bool printable() const { return printable_; }

  std::string constants;       // at namespace scope
  std::string local_constants; // of variables of the kernel
  std::string registers() const;

private:
  bool analyse(const clang::Stmt* statement);
  bool analyse_loop(const clang::ForStmt* loop);
  bool analyse_assignment(const clang::Stmt* statement, const WrittenAssignment& assigned);
  void add_site(const clang::Stmt* statement, const WrittenAssignment& assigned,
                const Memory& tile);
  void name_steps(StagedLoop& loop, const std::string& tile);
  std::string& scope_of(const CountedLoop& loop);

  bool is_printed(const StagingSite& site) const { return site.copied == (form_ == Form::Copy); }
  bool is_kept(const clang::Stmt* statement) const;
  void require(const clang::Stmt* statement);
  void require_for(const StagingSite& site);

  std::string print(const clang::Stmt* statement);
  std::string print_site(const StagingSite& site);
  std::string print_copy(const StagingSite& site);
  std::string print_copied(const CopiedElement& element, const std::string& place);
  std::string group_place(const clang::Expr& place, std::size_t element);
  std::string print_inside(const clang::Stmt* body);
  std::string print_loop(const clang::ForStmt* loop);
  std::string print_branch(const clang::IfStmt* branch);
  std::string print_definition(const clang::DeclStmt* definition);
  std::string text(const clang::Stmt* node);
  std::string operand(const clang::Expr* expr, Binding binding);

  const Kernel& kernel_;
  const Stages& stages_;
  Names& names_;
  std::map<const clang::Stmt*, StagedLoop> loops_;
  std::map<const clang::Stmt*, StagingSite> sites_;
  std::vector<std::pair<Memory, std::string>> registers_; // in source order
  std::set<const clang::VarDecl*> locals_;
  std::set<const clang::Stmt*> writers_;   // statements whose writes are understood
  std::vector<StagedLoop*> enclosing_;     // while analysing
  std::vector<std::string> step_counters_; // by nesting depth of loops by thread

  Form form_ = Form::Fetch;
  std::vector<Edit> edits_;
  std::set<const clang::VarDecl*> needed_;
  bool printable_ = true;
};

bool LoadSplitter::analyse(const StagePart& part) {
  return analyse(part.statement) &&
         std::ranges::all_of(part.accesses.list, [&](const MemoryAccess& access) {
           return !access.writes || writers_.contains(access.statement);
         });
}

bool LoadSplitter::analyse(const clang::Stmt* statement) {
  if (statement == nullptr || isa<clang::NullStmt>(statement)) {
    return true;
  }
  if (const auto* braces = dyn_cast<clang::CompoundStmt>(statement)) {
    return std::ranges::all_of(braces->body(), [&](const auto* child) { return analyse(child); });
  }
  if (const auto* attributed = dyn_cast<clang::AttributedStmt>(statement)) {
    return isa<clang::ForStmt>(attributed->getSubStmt()) && analyse(attributed->getSubStmt());
  }
  if (const auto* loop = dyn_cast<clang::ForStmt>(statement)) {
    return analyse_loop(loop);
  }
  if (const auto* branch = dyn_cast<clang::IfStmt>(statement)) {
    return !branch->hasInitStorage() && !branch->hasVarStorage() && !branch->isConstexpr() &&
           analyse(branch->getThen()) && analyse(branch->getElse());
  }
  if (const auto* definition = dyn_cast<clang::DeclStmt>(statement)) {
    const auto variables = variables_in(definition);
    locals_.insert(variables.begin(), variables.end());
    writers_.insert(definition);
    return std::ranges::all_of(variables, [](const auto* v) { return v->hasLocalStorage(); });
  }
  const auto assigned = assignment(statement);
  return assigned && analyse_assignment(statement, *assigned);
}

bool LoadSplitter::analyse_assignment(const clang::Stmt* statement,
                                      const WrittenAssignment& assigned) {
  const Memory target = memory_of(*assigned.place);
  writers_.insert(assigned.statement);
  if (target.space == Space::Shared && !assigned.compound &&
      !assigned.place->getType().isVolatileQualified()) {
    add_site(statement, assigned, target);
    return true;
  }
  return target.space == Space::Register && locals_.contains(target.variable);
}

bool LoadSplitter::analyse_loop(const clang::ForStmt* loop) {
  const auto counted = counted_loop(kernel_, *loop);
  const auto limit = counted ? constant_value(kernel_, *counted->limit) : std::nullopt;
  if (!limit || *limit <= 0) {
    return false;
  }
  StagedLoop staged{.counted = *counted, .count = "", .index = ""};
  if (!constant_value(kernel_, *counted->start)) {
    const auto range = thread_range(kernel_, *stages_.kernel, *counted->start);
    if (!range) {
      return false;
    }
    staged.by_thread = true;
    staged.guarded = *limit % counted->step_value != 0 || range->greatest >= counted->step_value;
  }
  writers_.insert(loop->getInit());
  writers_.insert(loop->getInc());
  StagedLoop& stored = loops_[loop] = staged;
  enclosing_.push_back(&stored);
  const bool understood = analyse(loop->getBody());
  enclosing_.pop_back();
  return understood && (!stored.by_thread || !stored.count.empty());
}

/// Where a constant made of the loop's bounds can be defined: outside what is split.
std::string& LoadSplitter::scope_of(const CountedLoop& loop) {
  std::set<const clang::VarDecl*> mentioned;
  add_mentioned(loop.limit, mentioned);
  add_mentioned(loop.step, mentioned);
  const auto any = [&](auto predicate) { return std::ranges::any_of(mentioned, predicate); };
  printable_ = printable_ && !any([&](const auto* v) { return locals_.contains(v); });
  return any([](const auto* v) { return !v->isFileVarDecl(); }) ? local_constants : constants;
}

void LoadSplitter::name_steps(StagedLoop& loop, const std::string& tile) {
  const CountedLoop& counted = loop.counted;
  std::string& scope = scope_of(counted);
  const std::string counter = counted.counter->getNameAsString();
  const std::string limit = operand(counted.limit, Binding::Product);
  const std::string step = counted.step == nullptr ? "1" : operand(counted.step, Binding::Operand);
  if (!loop.by_thread) {
    const bool from_zero = constant_value(kernel_, *counted.start) == 0 && counted.step_value == 1;
    const std::string start = operand(counted.start, Binding::Operand);
    loop.count = from_zero ? limit : "(" + limit + " - " + start + " + " + step + " - 1) / " + step;
    loop.index = from_zero ? counter : "(" + counter + " - " + start + ") / " + step;
    return;
  }
  const auto depth =
      static_cast<std::size_t>(std::ranges::count_if(enclosing_, [](const StagedLoop* outer) {
        return outer->by_thread && !outer->count.empty();
      }));
  if (depth == step_counters_.size()) {
    step_counters_.push_back(names_.fresh("step"));
  }
  loop.index = step_counters_[depth];
  loop.count = names_.fresh(stages_.kernel->getNameAsString() + "_" + tile + "_loads");
  if (loop.guarded) {
    scope +=
        "constexpr int " + loop.count + " = (" + limit + " + " + step + " - 1) / " + step + ";\n";
  } else {
    scope += "constexpr int " + loop.count + " = " + limit + " / " + step + ";\n";
    scope += "static_assert(" + limit + " % " + step + " == 0);\n";
  }
}

void LoadSplitter::add_site(const clang::Stmt* statement, const WrittenAssignment& assigned,
                            const Memory& tile) {
  const std::string name =
      tile.member != nullptr ? tile.member->getNameAsString() : tile.variable->getNameAsString();
  std::string extents;
  std::string indices;
  for (StagedLoop* loop : enclosing_) {
    if (loop->count.empty()) {
      name_steps(*loop, name);
    }
    extents += "[" + loop->count + "]";
    indices += "[" + loop->index + "]";
  }
  const std::string next = names_.fresh(name + "_next");
  const std::string type =
      assigned.place->getType().getUnqualifiedType().getAsString(kernel_.ast().getPrintingPolicy());
  registers_.emplace_back(tile, type + " " + next + extents + ";\n");
  sites_[statement] = {assigned, tile, next + indices, copy_source(*assigned.value)};
}

bool LoadSplitter::computes(const Memory& tile) const {
  return std::ranges::any_of(
      sites_, [&](const auto& site) { return site.second.tile == tile && !site.second.source; });
}

bool LoadSplitter::copy_except(const std::vector<Memory>& in_registers) {
  for (auto& [statement, site] : sites_) {
    site.copied = std::ranges::count(in_registers, site.tile) == 0;
  }
  std::erase_if(registers_, [&](const auto& tile) {
    return std::ranges::count(in_registers, tile.first) == 0;
  });
  return std::ranges::all_of(
      sites_, [](const auto& site) { return !site.second.copied || site.second.source; });
}

std::string LoadSplitter::registers() const {
  std::string result;
  for (const auto& [tile, definition] : registers_) {
    result += definition;
  }
  return result;
}

/// Whether the half needs the statement: a site, or what computes a variable in needed_.
bool LoadSplitter::is_kept(const clang::Stmt* statement) const {
  if (statement == nullptr) {
    return false;
  }
  if (const auto* definition = dyn_cast<clang::DeclStmt>(statement)) {
    return std::ranges::any_of(variables_in(definition),
                               [&](const auto* variable) { return needed_.contains(variable); });
  }
  if (const auto site = sites_.find(statement); site != sites_.end()) {
    return is_printed(site->second);
  }
  if (const auto assigned = assignment(statement)) {
    return needed_.contains(memory_of(*assigned->place).variable);
  }
  if (const auto* loop = dyn_cast<clang::ForStmt>(statement)) {
    return is_kept(loop->getBody());
  }
  return std::ranges::any_of(statement->children(),
                             [&](const clang::Stmt* child) { return is_kept(child); });
}

void LoadSplitter::require_for(const StagingSite& site) {
  if (form_ != Form::Fetch) {
    add_mentioned(site.assignment.place, needed_);
  }
  if (form_ == Form::Fetch || form_ == Form::Assign) {
    add_mentioned(site.assignment.value, needed_);
  }
  if (form_ == Form::Copy) {
    add_mentioned(site.source->whole, needed_);
    add_mentioned(site.source->group, needed_);
    for (const CopiedElement& element : site.source->elements) {
      add_mentioned(element.guard, needed_);
      add_mentioned(element.read, needed_);
    }
  }
}

/// Adds the variables that the kept statements mention to needed_.
void LoadSplitter::require(const clang::Stmt* statement) {
  if (!is_kept(statement)) {
    return;
  }
  if (const auto site = sites_.find(statement); site != sites_.end()) {
    return require_for(site->second);
  }
  if (isa<clang::DeclStmt>(statement) || assignment(statement)) {
    return add_mentioned(statement, needed_);
  }
  if (const auto* branch = dyn_cast<clang::IfStmt>(statement)) {
    add_mentioned(branch->getCond(), needed_);
  } else if (const auto* loop = dyn_cast<clang::ForStmt>(statement)) {
    add_mentioned(loop->getInit(), needed_);
    return require(loop->getBody());
  }
  for (const clang::Stmt* child : statement->children()) {
    require(child);
  }
}

std::string LoadSplitter::print(const std::vector<const StagePart*>& parts,
                                const std::vector<Edit>& edits, Form form) {
  form_ = form;
  edits_ = edits;
  needed_.clear();
  std::size_t known = 0;
  do {
    known = needed_.size();
    for (const StagePart* part : parts) {
      require(part->statement);
    }
  } while (known != needed_.size());
  std::string result;
  for (const StagePart* part : parts) {
    result += print(part->statement);
  }
  return result;
}

std::string LoadSplitter::print(const clang::Stmt* statement) {
  if (!is_kept(statement)) {
    return "";
  }
  if (const auto site = sites_.find(statement); site != sites_.end()) {
    return print_site(site->second);
  }
  if (const auto* attributed = dyn_cast<clang::AttributedStmt>(statement)) {
    return print(attributed->getSubStmt());
  }
  if (isa<clang::CompoundStmt>(statement)) {
    return "{\n" + print_inside(statement) + "}\n";
  }
  if (const auto* loop = dyn_cast<clang::ForStmt>(statement)) {
    return print_loop(loop);
  }
  if (const auto* branch = dyn_cast<clang::IfStmt>(statement)) {
    return print_branch(branch);
  }
  if (const auto* definition = dyn_cast<clang::DeclStmt>(statement)) {
    return print_definition(definition);
  }
  return text(statement) + "\n";
}

std::string LoadSplitter::print_site(const StagingSite& site) {
  switch (form_) {
  case Form::Fetch:
    return site.slot + " = " + text(site.assignment.value) + ";\n";
  case Form::Store:
    return text(site.assignment.place) + " = " + site.slot + ";\n";
  case Form::Assign:
    return text(site.assignment.statement) + "\n";
  case Form::Copy:
    return print_copy(site);
  }
  return "";
}

/// The place of one element of the group at *reinterpret_cast<float4 *>(&tile[row][column]).
std::string LoadSplitter::group_place(const clang::Expr& place, std::size_t element) {
  const auto* group = dyn_cast<clang::UnaryOperator>(place.IgnoreParens());
  const auto* address =
      group == nullptr || group->getOpcode() != clang::UO_Deref
          ? nullptr
          : dyn_cast<clang::UnaryOperator>(group->getSubExpr()->IgnoreParenCasts());
  const auto* first =
      address == nullptr
          ? nullptr
          : dyn_cast<clang::ArraySubscriptExpr>(address->getSubExpr()->IgnoreParens());
  const auto index =
      first == nullptr ? std::nullopt : span_of(kernel_, first->getIdx()->getSourceRange());
  if (!index) {
    printable_ = false;
    return "";
  }
  if (element == 0) {
    return text(first);
  }
  const std::string moved =
      operand(first->getIdx(), Binding::Sum) + " + " + std::to_string(element);
  std::vector<Edit> edits = edits_;
  std::erase_if(edits, [&](const Edit& edit) { return index->contains(edit.offset); });
  edits.push_back({index->begin, index->length(), moved});
  sort_edits(edits);
  const auto span = span_of(kernel_, first->getSourceRange());
  return span ? render(kernel_, *span, edits) : "";
}

/// __pipeline_memcpy_async(&tile[row][k], &W[i], sizeof(float), guard ? 0 : sizeof(float)): what is
/// out of range is not read.
std::string LoadSplitter::print_copied(const CopiedElement& element, const std::string& place) {
  const std::string zeros =
      element.guard == nullptr ? "" : ", " + text(element.guard) + " ? 0 : sizeof(float)";
  return "__pipeline_memcpy_async(&" + place + ", &" + text(element.read) + ", sizeof(float)" +
         zeros + ");\n";
}

std::string LoadSplitter::print_copy(const StagingSite& site) {
  const clang::Expr& place = *site.assignment.place;
  const CopySource& source = *site.source;
  if (!place.getType()->isRecordType()) {
    return print_copied(source.elements.front(), text(&place));
  }
  std::string single;
  for (std::size_t i = 0; i < source.elements.size(); ++i) {
    single += print_copied(source.elements[i], group_place(place, i));
  }
  if (source.group == nullptr) {
    return single;
  }
  const std::string type =
      place.getType().getUnqualifiedType().getAsString(kernel_.ast().getPrintingPolicy());
  const std::string group = "__pipeline_memcpy_async(&" + group_place(place, 0) + ", " +
                            text(source.group) + ", sizeof(" + type + "));\n";
  return source.whole == nullptr
             ? group
             : "if (" + text(source.whole) + ") {\n" + group + "} else {\n" + single + "}\n";
}

std::string LoadSplitter::print_inside(const clang::Stmt* body) {
  const auto* braces = dyn_cast<clang::CompoundStmt>(body);
  if (braces == nullptr) {
    return print(body);
  }
  std::string result;
  for (const clang::Stmt* child : braces->body()) {
    result += print(child);
  }
  return result;
}

std::string LoadSplitter::print_loop(const clang::ForStmt* loop) {
  const StagedLoop& staged = loops_.at(loop);
  const CountedLoop& counted = staged.counted;
  const std::string body = print_inside(loop->getBody());
  if (!staged.by_thread) {
    return "#pragma unroll\nfor (" + text(loop->getInit()) + " " + text(loop->getCond()) + "; " +
           text(loop->getInc()) + ") {\n" + body + "}\n";
  }
  const std::string& step = staged.index;
  std::string result = "#pragma unroll\nfor (int " + step + " = 0; " + step + " < " + staged.count +
                       "; ++" + step + ") {\n";
  if (staged.guarded || needed_.contains(counted.counter)) {
    const std::string stride =
        counted.step == nullptr ? step : step + " * " + operand(counted.step, Binding::Operand);
    const std::string type = counted.counter->getType().getUnqualifiedType().getAsString(
        kernel_.ast().getPrintingPolicy());
    result += "const " + type + " " + counted.counter->getNameAsString() + " = " +
              operand(counted.start, Binding::Sum) + " + " + stride + ";\n";
  }
  result += staged.guarded ? "if (" + text(loop->getCond()) + ") {\n" + body + "}\n" : body;
  return result + "}\n";
}

std::string LoadSplitter::print_branch(const clang::IfStmt* branch) {
  std::string result =
      "if (" + text(branch->getCond()) + ") {\n" + print_inside(branch->getThen()) + "}";
  if (is_kept(branch->getElse())) {
    result += " else {\n" + print_inside(branch->getElse()) + "}";
  }
  return result + "\n";
}

std::string LoadSplitter::print_definition(const clang::DeclStmt* definition) {
  const bool all = std::ranges::all_of(
      variables_in(definition), [&](const auto* variable) { return needed_.contains(variable); });
  return (all ? "" : "[[maybe_unused]] ") + text(definition) + "\n";
}

std::string LoadSplitter::text(const clang::Stmt* node) {
  const bool value = isa<clang::Expr>(node) && !assignment(node);
  const auto span = value ? span_of(kernel_, node->getSourceRange()) : span_of(kernel_, *node);
  printable_ = printable_ && span;
  return span ? render(kernel_, *span, edits_) : "";
}

std::string LoadSplitter::operand(const clang::Expr* expr, Binding binding) {
  const auto written = evo::operand(kernel_, *expr, binding, edits_);
  printable_ = printable_ && written;
  return written.value_or("");
}

} // namespace

std::optional<RegisterStaging> split_loads(const Kernel& kernel, const Stages& stages,
                                           const std::vector<const StagePart*>& loads,
                                           const std::vector<Edit>& fetch_edits,
                                           const std::vector<Edit>& store_edits, Names& names) {
  LoadSplitter splitter(kernel, stages, names);
  if (!std::ranges::all_of(loads, [&](const StagePart* part) { return splitter.analyse(*part); })) {
    return std::nullopt;
  }
  std::string fetch = splitter.print(loads, fetch_edits, Form::Fetch);
  std::string store = splitter.print(loads, store_edits, Form::Store);
  if (!splitter.printable()) {
    return std::nullopt;
  }
  return RegisterStaging{splitter.constants, splitter.local_constants + splitter.registers(),
                         std::move(fetch), std::move(store)};
}

std::optional<std::vector<Memory>> computed_tiles(const Kernel& kernel, const Stages& stages,
                                                  const std::vector<const StagePart*>& loads) {
  Names names(kernel);
  LoadSplitter splitter(kernel, stages, names);
  if (!std::ranges::all_of(loads, [&](const StagePart* part) { return splitter.analyse(*part); })) {
    return std::nullopt;
  }
  std::vector<Memory> result;
  std::ranges::copy_if(stages.tiles, std::back_inserter(result),
                       [&](const Memory& tile) { return splitter.computes(tile); });
  return result;
}

std::optional<AsyncLoads> copy_loads(const Kernel& kernel, const Stages& stages,
                                     const std::vector<const StagePart*>& loads,
                                     const std::vector<Memory>& in_registers,
                                     const std::vector<Edit>& first_edits,
                                     const std::vector<Edit>& next_edits, Names& names) {
  LoadSplitter splitter(kernel, stages, names);
  if (!std::ranges::all_of(loads, [&](const StagePart* part) { return splitter.analyse(*part); }) ||
      !splitter.copy_except(in_registers)) {
    return std::nullopt;
  }
  AsyncLoads result{.constants = splitter.constants,
                    .local_constants = splitter.local_constants,
                    .first_copies = splitter.print(loads, first_edits, Form::Copy),
                    .first_assignments = splitter.print(loads, first_edits, Form::Assign),
                    .next_copies = splitter.print(loads, next_edits, Form::Copy),
                    .registers = splitter.registers(),
                    .next_fetch = splitter.print(loads, next_edits, Form::Fetch),
                    .next_store = splitter.print(loads, next_edits, Form::Store)};
  return splitter.printable() ? std::optional(std::move(result)) : std::nullopt;
}

} // namespace evo
