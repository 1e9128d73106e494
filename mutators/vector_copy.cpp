#include "mutators/vector_copy.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/affine_view.hpp"
#include "mutators/analysis/conditions.hpp"
#include "mutators/analysis/dependence_graph.hpp"
#include "mutators/analysis/exchange.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/names.hpp"
#include "mutators/render.hpp"
#include "mutators/tile_alignment.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::int64_t launch_size = 1027; // block sizes are constants

class UseCollector : public SyntaxVisitor {
public:
  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
    uses.push_back(use);
    return true;
  }
  std::vector<const clang::DeclRefExpr*> uses;
};

std::vector<const clang::DeclRefExpr*> uses_in(const clang::Stmt& code) {
  UseCollector collector;
  collector.TraverseStmt(const_cast<clang::Stmt*>(&code));
  return std::move(collector.uses);
}

/// Whether a sum may stand where `use` does without parentheses.
bool takes_a_sum(const Kernel& kernel, const clang::DeclRefExpr& use) {
  const clang::Stmt* around = parent_of(kernel, use);
  while (around != nullptr && clang::isa<clang::ImplicitCastExpr>(around)) {
    around = parent_of(kernel, *around);
  }
  const auto* operation = dyn_cast<clang::BinaryOperator>(around);
  const auto* subscript = dyn_cast<clang::ArraySubscriptExpr>(around);
  return clang::isa<clang::ParenExpr>(around) ||
         (subscript != nullptr && subscript->getIdx()->IgnoreParenImpCasts() == &use) ||
         (operation != nullptr &&
          (operation->getOpcode() == clang::BO_Add || operation->isComparisonOp()));
}

/// Whether the threads of every launch begin at 0, 1, ..., stride - 1, each number once.
bool starts_cover(const Kernel& kernel, const clang::FunctionDecl& function,
                  const clang::Expr& start, std::int64_t stride) {
  const auto dims = find_dims(kernel);
  const auto launches = dims ? evaluate_launches(kernel, dims->at(launch_size))
                             : std::variant<std::vector<EvaluatedLaunch>, Failure>{Failure{}};
  const auto* all = std::get_if<std::vector<EvaluatedLaunch>>(&launches);
  bool launched = false;
  for (const EvaluatedLaunch& launch : all == nullptr ? std::vector<EvaluatedLaunch>{} : *all) {
    if (launch.launch.kernel != &function) {
      continue;
    }
    launched = true;
    Evaluator evaluator(kernel);
    const auto values = evaluator.value(start, launch.block_at({0, 0, 0}));
    const auto* lanes = std::get_if<Ints>(&values);
    if (lanes == nullptr || launch.block.count() != stride) {
      return false;
    }
    std::set<std::int64_t> distinct;
    for (std::int64_t lane = 0; lane < stride; ++lane) {
      distinct.insert((*lanes)[static_cast<std::size_t>(lane)]);
    }
    if (std::cmp_not_equal(distinct.size(), stride) || *distinct.begin() != 0 ||
        *distinct.rbegin() != stride - 1) {
      return false;
    }
  }
  return launched;
}

/// Whether two pieces of code stand in the two arms of one if.
bool exclude_each_other(const Kernel& kernel, const clang::Stmt& a, const clang::Stmt& b) {
  const clang::Stmt* around = parent_of(kernel, a);
  const clang::Stmt* arm = &a;
  while (around != nullptr && !contains(*around, b)) {
    arm = around;
    around = parent_of(kernel, *around);
  }
  const auto* branch = clang::dyn_cast_or_null<clang::IfStmt>(around);
  return branch != nullptr && (arm == branch->getThen() || arm == branch->getElse());
}

/// One loop's rewrite.
class VectorCopy {
public:
  /// With `dealt`, one half of a copy through registers.
  VectorCopy(const Kernel& kernel, const CopyLoop& copy, int width,
             std::optional<DealtIndex> dealt = {})
      : kernel_(kernel), copy_(copy), width_(width), dealt_(dealt),
        view_(kernel, moving(copy, dealt), width), names_(kernel),
        vector_("float" + std::to_string(width)) {}

  std::optional<std::vector<Edit>> edits() {
    const auto span = span_of(kernel_, *copy_.loop.counted.loop->getBody());
    const bool in_groups = dealt_ ? by_steps() : of_one_thread() || by_threads();
    if (!span || !in_groups) {
      return std::nullopt;
    }
    const std::string body = definitions() + moves();
    if (!possible_) {
      return std::nullopt;
    }
    edits_.push_back({span->begin, span->length(), "{\n" + body + "}"});
    sort_edits(edits_);
    return edits_;
  }

private:
  // the loop
  bool of_one_thread();
  bool by_threads();
  bool by_steps();
  bool is_thread_independent();
  bool is_undisturbed();
  bool has_memory_to_itself();
  static std::set<const clang::VarDecl*> moving(const CopyLoop& copy,
                                                const std::optional<DealtIndex>& dealt) {
    return dealt ? std::set{copy.loop.counted.counter, dealt->index}
                 : std::set{copy.loop.counted.counter};
  }

  // what it does
  std::string definitions();
  std::string moves();
  std::string to_registers();
  std::string to_shared();
  std::string to_global();
  std::string compute_first();
  bool stands_in_braces() const;
  bool reads_other_memory() const;
  std::string one_by_one(const std::string& name);
  std::string group_value();
  std::string wide_load();
  std::string wide(const clang::ArraySubscriptExpr& place);
  std::string pointer_to(const clang::ArraySubscriptExpr& place, bool is_const);
  std::string stored(const std::string& place, const std::string& pointer,
                     const std::string& value);
  std::string in_conditions(const std::string& code);

  bool is_consecutive(const clang::ArraySubscriptExpr& place);
  bool is_wide_in_shared(const clang::ArraySubscriptExpr& place);
  std::string is_aligned(const clang::ArraySubscriptExpr& place);
  std::vector<std::string> holds_throughout(const clang::Expr& condition);
  bool is_alike_throughout(const Condition& condition);
  std::string at(const clang::Stmt& code, int element);
  std::string text(const clang::Stmt& code) { return at(code, 0); }
  void replace(const clang::Stmt& node, const std::string& with);
  std::string counter() const { return copy_.loop.counted.counter->getNameAsString(); }
  std::string refuse() {
    possible_ = false;
    return "";
  }

  const Kernel& kernel_;
  const CopyLoop& copy_;
  const int width_;
  const std::optional<DealtIndex> dealt_;
  AffineView view_;
  Names names_;
  const std::string vector_; // "float4"
  std::vector<Edit> edits_;
  std::vector<Edit> definition_edits_;
  bool possible_ = true;
};

void VectorCopy::replace(const clang::Stmt& node, const std::string& with) {
  const auto span = span_of(kernel_, node.getSourceRange());
  possible_ = possible_ && span;
  edits_.push_back({span.value_or(Span{}).begin, span.value_or(Span{}).length(), with});
}

/// for (j = 0; j < N; ++j): the group's elements belong to one thread anyway.
bool VectorCopy::of_one_thread() {
  const CountedLoop& loop = copy_.loop.counted;
  const auto start = constant_value(kernel_, *loop.start);
  const auto trips = trip_count(kernel_, loop);
  if (!start || *start < 0 || *start % width_ != 0 || loop.step_value != 1 || !trips ||
      *trips % width_ != 0 || *trips == 0) {
    return false;
  }
  replace(*loop.loop->getInc(), counter() + " += " + std::to_string(width_));
  return true;
}

/// for (i = threadIdx.x; i < N; i += threads): a thread takes its group instead of its element.
bool VectorCopy::by_threads() {
  const CountedLoop& loop = copy_.loop.counted;
  const auto limit = constant_value(kernel_, *loop.limit);
  if (loop.step == nullptr || !limit || *limit <= 0 || *limit % width_ != 0 ||
      copy_.to.space == Space::Register || !is_thread_independent() ||
      !starts_cover(kernel_, *copy_.loop.function, *loop.start, loop.step_value)) {
    return false;
  }
  const std::string times = " * " + std::to_string(width_);
  const auto start = operand(kernel_, *loop.start, Binding::Product);
  const auto step = operand(kernel_, *loop.step, Binding::Product);
  possible_ = possible_ && start && step;
  replace(*loop.start, start.value_or("") + times);
  replace(*loop.loop->getInc(), counter() + " += " + step.value_or("") + times);
  return true;
}

/// const int i = threadIdx.x + step * threads: a thread's steps make up groups, and every group is
/// some thread's.
bool VectorCopy::by_steps() {
  if (!of_one_thread() || !is_thread_independent() ||
      !starts_cover(kernel_, *copy_.loop.function, *dealt_->start, dealt_->stride)) {
    return false;
  }
  const auto span = span_of(kernel_, dealt_->start->getSourceRange());
  const auto start = operand(kernel_, *dealt_->start, Binding::Product);
  possible_ = possible_ && span && start;
  definition_edits_.push_back({span.value_or(Span{}).begin, span.value_or(Span{}).length(),
                               start.value_or("") + " * " + std::to_string(width_)});
  return true;
}

/// Whether an element is moved alike by whatever thread.
bool VectorCopy::is_thread_independent() {
  Uniformity uniform(kernel_, moving(copy_, dealt_));
  const bool to_registers = copy_.to.space == Space::Register;
  return (to_registers || (uniform.holds(*copy_.place) && is_undisturbed())) &&
         (copy_.from.space == Space::Register || uniform.holds(*copy_.value)) &&
         std::ranges::all_of(copy_.conditions,
                             [&](const clang::Expr* c) { return uniform.holds(*c); });
}

/// Whether it does not matter to the other statements which thread moves an element to shared
/// memory, or from there to global memory.
bool VectorCopy::is_undisturbed() {
  const clang::ForStmt& loop = *copy_.loop.counted.loop;
  if (copy_.to.space == Space::Shared) {
    return is_alone_between_barriers(kernel_, loop, *copy_.place);
  }
  return copy_.read != nullptr && copy_.from.space == Space::Shared &&
         is_alone_between_barriers(kernel_, loop, *copy_.read) && has_memory_to_itself();
}

/// Whether nothing else that runs where the copy does accesses what it writes.
bool VectorCopy::has_memory_to_itself() {
  const clang::ForStmt& loop = *copy_.loop.counted.loop;
  const Accesses accesses = accesses_of(*copy_.loop.function->getBody());
  return accesses.opaque == nullptr &&
         std::ranges::all_of(accesses.list, [&](const MemoryAccess& access) {
           return access.memory != copy_.to || access.place == copy_.place ||
                  (access.place != nullptr && exclude_each_other(kernel_, *access.place, loop));
         });
}

/// The text for one element of a group: what moves is put ahead by as much.
std::string VectorCopy::at(const clang::Stmt& code, int element) {
  std::vector<Edit> ahead;
  for (const clang::DeclRefExpr* use :
       element == 0 ? std::vector<const clang::DeclRefExpr*>{} : uses_in(code)) {
    if (copy_.hinted_load != nullptr && use->getDecl() == copy_.hinted_load->getDirectCallee()) {
      continue;
    }
    const auto progression =
        use->getType()->isIntegerType() ? view_.of(*use) : std::optional(Progression{});
    const auto* variable = dyn_cast<clang::VarDecl>(use->getDecl());
    const auto span = span_of(kernel_, use->getSourceRange());
    if (!progression || !span || variable == nullptr) {
      return refuse();
    }
    if (progression->slope != 0) {
      const std::string sum =
          variable->getNameAsString() + " + " + std::to_string(progression->slope * element);
      ahead.push_back(
          {span->begin, span->length(), takes_a_sum(kernel_, *use) ? sum : "(" + sum + ")"});
    }
  }
  const auto span = clang::isa<clang::Expr>(code) ? span_of(kernel_, code.getSourceRange())
                                                  : span_of(kernel_, code);
  return span ? render(kernel_, *span, ahead) : refuse();
}

std::string VectorCopy::definitions() {
  std::string result;
  for (const clang::DeclStmt* definition : copy_.definitions) {
    const auto span = span_of(kernel_, *definition);
    result += span ? render(kernel_, *span, definition_edits_) + "\n" : refuse();
  }
  return result;
}

std::string VectorCopy::moves() {
  if (!copy_.computation.empty() && copy_.to.space != Space::Global) {
    return refuse();
  }
  switch (copy_.to.space) {
  case Space::Register:
    return in_conditions(to_registers());
  case Space::Shared:
    return in_conditions(to_shared());
  default:
    return to_global();
  }
}

bool VectorCopy::is_consecutive(const clang::ArraySubscriptExpr& place) {
  const auto element = view_.element(place);
  return element && element->slope == 1;
}

/// With the hint that the copy's load has, if any.
std::string VectorCopy::wide_load() {
  const std::string pointer = pointer_to(*copy_.read, true);
  return copy_.hinted_load == nullptr
             ? "*" + pointer
             : copy_.hinted_load->getDirectCallee()->getNameAsString() + "(" + pointer + ")";
}

std::string VectorCopy::wide(const clang::ArraySubscriptExpr& place) {
  return "*" + pointer_to(place, false);
}

std::string VectorCopy::pointer_to(const clang::ArraySubscriptExpr& place, bool is_const) {
  return "reinterpret_cast<" + std::string(is_const ? "const " : "") + vector_ + " *>(&" +
         text(place) + ")";
}

/// With the hint that the copy's store has, if any.
std::string VectorCopy::stored(const std::string& place, const std::string& pointer,
                               const std::string& value) {
  return copy_.hinted_store == nullptr ? place + " = " + value + ";\n"
                                       : copy_.hinted_store->getDirectCallee()->getNameAsString() +
                                             "(" + pointer + ", " + value + ");\n";
}

std::string VectorCopy::is_aligned(const clang::ArraySubscriptExpr& place) {
  return "reinterpret_cast<size_t>(&" + text(place) + ") % sizeof(" + vector_ + ") == 0";
}

/// The group's values as a vector: one load where the elements are consecutive, else put together.
std::string VectorCopy::group_value() {
  const bool reads_memory = copy_.read != nullptr && copy_.from.space != Space::Register;
  std::string single = "make_" + vector_ + "(";
  for (int element = 0; element < width_; ++element) {
    single += (element == 0 ? "" : ", ") + at(*copy_.value, element);
  }
  single += ")";
  if (!reads_memory || !is_consecutive(*copy_.read)) {
    return single;
  }
  std::vector<std::string> conditions =
      copy_.guard == nullptr ? std::vector<std::string>{} : holds_throughout(*copy_.guard);
  if (copy_.from.space == Space::Shared) {
    if (!is_wide_in_shared(*copy_.read)) {
      return single;
    }
  } else {
    conditions.push_back(is_aligned(*copy_.read));
  }
  std::string whole;
  for (const std::string& condition : conditions) {
    whole += (whole.empty() ? "" : " && ") + condition;
  }
  const std::string load = wide_load();
  return whole.empty() ? load : whole + " ? " + load + " : " + single;
}

std::string VectorCopy::to_registers() {
  const bool loads =
      copy_.read != nullptr && copy_.from.space != Space::Register && is_consecutive(*copy_.read);
  if (!loads) {
    return refuse();
  }
  if (copy_.from.space == Space::Shared && !is_wide_in_shared(*copy_.read)) {
    return refuse();
  }
  return one_by_one(copy_.to.variable->getNameAsString());
}

/// Loads the group at once and puts its elements where they belong.
std::string VectorCopy::one_by_one(const std::string& name) {
  const std::string vector = names_.fresh(name + "_vector");
  std::string result = "const " + vector_ + " " + vector + " = " + group_value() + ";\n";
  for (int element = 0; element < width_; ++element) {
    result += at(*copy_.place, element) + " = " + vector + "." + "xyzw"[element] + ";\n";
  }
  return result;
}

std::string VectorCopy::to_shared() {
  const bool reads_memory = copy_.from.space != Space::Register;
  const bool loads = copy_.read != nullptr && is_consecutive(*copy_.read);
  if (reads_memory && !loads) {
    return refuse();
  }
  if (is_consecutive(*copy_.place) && is_wide_in_shared(*copy_.place)) {
    return wide(*copy_.place) + " = " + group_value() + ";\n";
  }
  if (dealt_) { // the other half gains
    std::string result;
    for (int element = 0; element < width_; ++element) {
      result += at(*copy_.place, element) + " = " + at(*copy_.value, element) + ";\n";
    }
    return result;
  }
  return reads_memory
             ? one_by_one(copy_.to.member != nullptr ? copy_.to.member->getNameAsString()
                                                     : copy_.to.variable->getNameAsString())
             : refuse();
}

/// Whole groups at once where they are aligned, else those elements whose conditions hold.
std::string VectorCopy::to_global() {
  if (!is_consecutive(*copy_.place)) {
    return refuse();
  }
  const bool computes = !copy_.computation.empty() || copy_.from.space == Space::Global;
  const std::string values = computes ? compute_first() : "";
  std::string whole;
  for (const clang::Expr* condition : copy_.conditions) {
    for (const std::string& part : holds_throughout(*condition)) {
      whole += part + " && ";
    }
  }
  std::string group;
  std::string single;
  for (int element = 0; element < width_; ++element) {
    const std::string index = counter() + (element == 0 ? "" : " + " + std::to_string(element));
    const std::string value = computes ? values + "[" + index + "]" : at(*copy_.value, element);
    group += (element == 0 ? "" : ", ") + value;
    for (const clang::Expr* condition : copy_.conditions) {
      single += "if (" + at(*condition, element) + ") ";
    }
    const std::string place = at(*copy_.place, element);
    single += "{\n" + stored(place, "&" + place, value) + "}\n";
  }
  group = computes ? "make_" + vector_ + "(" + group + ")" : group_value();
  return "if (" + whole + is_aligned(*copy_.place) + ") {\n" +
         stored(wide(*copy_.place), pointer_to(*copy_.place, false), group) + "} else {\n" +
         single + "}\n";
}

/// Puts a loop before this one that computes all values into an array, whose name it returns: what
/// it reads stays the same.
std::string VectorCopy::compute_first() {
  const DeviceLoop& loop = copy_.loop;
  const auto begin = begin_of(kernel_, loop);
  const auto span = span_of(kernel_, *loop.counted.loop);
  const auto place = span_of(kernel_, copy_.place->getSourceRange());
  const auto value = span_of(kernel_, copy_.value->getSourceRange());
  const auto hinted = copy_.hinted_store == nullptr
                          ? std::optional(Span{})
                          : span_of(kernel_, copy_.hinted_store->getSourceRange());
  if (!begin || !span || !place || !value || !hinted || !stands_in_braces() ||
      !reads_other_memory() || constant_value(kernel_, *loop.counted.start) != 0) {
    return refuse();
  }
  const std::string values = names_.fresh(copy_.to.variable->getNameAsString() + "_values");
  const Span store = copy_.hinted_store == nullptr ? Span{place->begin, value->end} : *hinted;
  const std::string kept = values + "[" + counter() + "] = " + render(kernel_, *value);
  edits_.push_back(
      {*begin, 0,
       "float " + values + "[" + text(*loop.counted.limit) + "];\n" +
           render(kernel_, {*begin, span->end}, {{store.begin, store.length(), kept}}) + "\n"});
  return values;
}

bool VectorCopy::stands_in_braces() const {
  const clang::Stmt* around = parent_of(kernel_, *copy_.loop.counted.loop);
  if (around != nullptr && clang::isa<clang::AttributedStmt>(around)) {
    around = parent_of(kernel_, *around);
  }
  return around != nullptr && clang::isa<clang::CompoundStmt>(around);
}

/// Whether no launch passes the memory that is written as what is read.
bool VectorCopy::reads_other_memory() const {
  const clang::FunctionDecl* entry = find_entry(kernel_);
  const auto base = [&](const Launch& launch, const clang::VarDecl* variable) {
    const auto* parameter = clang::dyn_cast_or_null<clang::ParmVarDecl>(variable);
    return parameter == nullptr
               ? nullptr
               : pointer_of(*entry, *launch.arguments[parameter->getFunctionScopeIndex()]).base;
  };
  const Accesses accesses = accesses_of(*copy_.loop.counted.loop->getBody());
  std::vector<Launch> launches = find_launches(kernel_);
  std::erase_if(launches, [&](const Launch& l) { return l.kernel != copy_.loop.function; });
  return !launches.empty() && std::ranges::all_of(launches, [&](const Launch& launch) {
    const clang::VarDecl* written = base(launch, copy_.to.variable);
    return written != nullptr &&
           std::ranges::all_of(accesses.list, [&](const MemoryAccess& access) {
             const bool reads = access.reads && access.memory.space == Space::Global;
             const auto* read = reads ? base(launch, access.memory.variable) : nullptr;
             return !reads || (read != nullptr && read != written);
           });
  });
}

/// The ifs around an assignment, if all elements of a group agree on them.
std::string VectorCopy::in_conditions(const std::string& code) {
  std::string result = code;
  for (const clang::Expr* condition : copy_.conditions) {
    for (const Condition& part : conjuncts({{condition, true}})) {
      if (!is_alike_throughout(part)) {
        return refuse();
      }
    }
    result = "if (" + text(*condition) + ") {\n" + result + "}\n";
  }
  return result;
}

/// Whether a condition holds for all elements of a group or for none. i < N does where both count
/// whole groups.
bool VectorCopy::is_alike_throughout(const Condition& condition) {
  const auto* comparison = dyn_cast<clang::BinaryOperator>(condition.expression);
  if (comparison != nullptr &&
      (comparison->getOpcode() == clang::BO_LT || comparison->getOpcode() == clang::BO_GE)) {
    const auto left = view_.of(*comparison->getLHS());
    const auto right = view_.of(*comparison->getRHS());
    if (left && right && left->slope == 1 && right->slope == 0 && left->is_multiple_of(width_) &&
        right->is_multiple_of(width_)) {
      return true;
    }
  }
  return std::ranges::all_of(uses_in(*condition.expression), [&](const clang::DeclRefExpr* use) {
    const auto value =
        use->getType()->isIntegerType() ? view_.of(*use) : std::optional(Progression{});
    return value && value->slope == 0;
  });
}

/// What to ask, so that the condition holds for every element of a group.
std::vector<std::string> VectorCopy::holds_throughout(const clang::Expr& condition) {
  std::vector<std::string> result;
  for (const Condition& part : conjuncts({{&condition, true}})) {
    const auto* comparison = dyn_cast<clang::BinaryOperator>(part.expression);
    int element = 0;
    if (!is_alike_throughout(part)) {
      const auto left = comparison == nullptr ? std::nullopt : view_.of(*comparison->getLHS());
      const auto right = comparison == nullptr ? std::nullopt : view_.of(*comparison->getRHS());
      if (!left || !right || !comparison->isRelationalOp()) {
        refuse();
        return {};
      }
      const auto opcode = part.holds
                              ? comparison->getOpcode()
                              : clang::BinaryOperator::negateComparisonOp(comparison->getOpcode());
      const bool rises = left->slope > right->slope; // the left side against the right
      const bool wants_less = opcode == clang::BO_LT || opcode == clang::BO_LE;
      element = rises == wants_less ? width_ - 1 : 0;
    }
    const std::string asked = at(*part.expression, element);
    result.push_back(part.holds ? comparison == nullptr ? "(" + asked + ")" : asked
                                : "!(" + asked + ")");
  }
  return result;
}

bool VectorCopy::is_wide_in_shared(const clang::ArraySubscriptExpr& place) {
  const auto element = view_.element(place);
  const auto aligned = align_tile(kernel_, place, width_ * std::int64_t{sizeof(float)});
  if (!element || element->slope != 1 || !element->is_multiple_of(width_) || !aligned) {
    return false;
  }
  for (const Edit& edit : *aligned) {
    if (std::ranges::count(edits_, edit) == 0) {
      edits_.push_back(edit);
    }
  }
  return true;
}

/// Whether each step of `store` puts into shared memory what the same step of `fetch` took from
/// global memory, through an array that serves nothing else.
bool are_halves(const Kernel& kernel, const CopyLoop& fetch, const CopyLoop& store) {
  const auto is_step = [](const clang::ArraySubscriptExpr* slot, const CopyLoop& copy) {
    const auto* index = slot == nullptr
                            ? nullptr
                            : dyn_cast<clang::DeclRefExpr>(slot->getIdx()->IgnoreParenImpCasts());
    return index != nullptr && index->getDecl() == copy.loop.counted.counter &&
           clang::isa<clang::DeclRefExpr>(slot->getBase()->IgnoreParenImpCasts());
  };
  const bool one_array =
      fetch.to.space == Space::Register && store.to.space == Space::Shared &&
      fetch.from.space == Space::Global && store.guard == nullptr && store.from == fetch.to &&
      is_step(fetch.place, fetch) && is_step(store.read, store) &&
      trip_count(kernel, fetch.loop.counted) == trip_count(kernel, store.loop.counted);
  const auto uses = one_array ? references(kernel, *fetch.to.variable) : std::nullopt;
  return uses && uses->size() == 2;
}

} // namespace

std::optional<std::vector<Edit>> vectorised(const Kernel& kernel, const CopyLoop& copy, int width) {
  return VectorCopy(kernel, copy, width).edits();
}

std::optional<std::vector<Edit>> vectorised(const Kernel& kernel, const CopyLoop& fetch,
                                            const CopyLoop& store, int width) {
  const auto fetched = dealt_index(kernel, fetch);
  const auto stored = dealt_index(kernel, store);
  if (!fetched || !stored || !are_halves(kernel, fetch, store) ||
      fetched->stride != stored->stride ||
      !same_expression(kernel, fetched->start, stored->start)) {
    return std::nullopt;
  }
  auto edits = VectorCopy(kernel, fetch, width, fetched).edits();
  const auto more = VectorCopy(kernel, store, width, stored).edits();
  if (!edits || !more) {
    return std::nullopt;
  }
  edits->insert(edits->end(), more->begin(), more->end());
  sort_edits(*edits);
  return edits;
}

} // namespace evo
