#include "mutators/analysis/dependence_graph.hpp"

#include <algorithm>
#include <set>

#include <boost/graph/adjacency_list.hpp>
#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/expressions.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// The launch or other expression that a statement is.
const clang::Stmt& expression_in(const clang::Stmt& statement) {
  const auto* full = dyn_cast<clang::FullExpr>(&statement);
  return full == nullptr ? statement : *full->getSubExpr();
}

void mark(Use& use, bool reads, bool writes) {
  use.reads |= reads;
  use.writes |= writes;
}

/// Inline assembly and the like may do to a pointer whatever its type allows.
void mark_everything(const clang::FunctionDecl& kernel, const std::vector<Pointer>& arguments,
                     Uses& uses) {
  for (unsigned i = 0; i < kernel.getNumParams(); ++i) {
    const clang::QualType type = kernel.getParamDecl(i)->getType();
    if (type->isPointerType()) {
      mark(uses[arguments[i].base], true, !type->getPointeeType().isConstQualified());
    }
  }
}

Uses uses_of(const Launch& launch, const clang::FunctionDecl& entry) {
  std::vector<Pointer> arguments;
  for (const clang::Expr* argument : launch.arguments) {
    arguments.push_back(argument->getType()->isPointerType() ? pointer_of(entry, *argument)
                                                             : Pointer{});
  }
  Uses uses;
  const Accesses accesses = accesses_of(*launch.kernel->getBody());
  for (const MemoryAccess& access : accesses.list) {
    if (access.memory.space == Space::Register || access.memory.space == Space::Shared) {
      continue;
    }
    const auto* parameter = clang::dyn_cast_or_null<clang::ParmVarDecl>(access.memory.variable);
    const clang::VarDecl* base = parameter == nullptr
                                     ? access.memory.variable
                                     : arguments[parameter->getFunctionScopeIndex()].base;
    mark(uses[base], access.reads, access.writes);
  }
  if (accesses.opaque != nullptr) {
    mark_everything(*launch.kernel, arguments, uses);
  }
  return uses;
}

std::optional<Dependence> dependence_between(const Use& earlier, const Use& later) {
  if (earlier.writes && later.reads) {
    return Dependence::ReadAfterWrite;
  }
  if (earlier.reads && later.writes) {
    return Dependence::WriteAfterRead;
  }
  return earlier.writes && later.writes ? std::optional(Dependence::WriteAfterWrite) : std::nullopt;
}

/// The first kind in the enumeration's order, where there are several.
std::optional<Dependence> dependence_between(const Uses& earlier, const Uses& later) {
  std::optional<Dependence> first;
  for (const auto& [base, use] : earlier) {
    for (const auto& [other_base, other] : later) {
      const bool may_overlap = base == other_base || base == nullptr || other_base == nullptr;
      const auto found = may_overlap ? dependence_between(use, other) : std::nullopt;
      if (found && (!first || *found < *first)) {
        first = found;
      }
    }
  }
  return first;
}

bool one_stream(const Kernel& kernel, const std::vector<Launch>& launches) {
  return std::ranges::all_of(launches, [&](const Launch& launch) {
    return same_expression(kernel, launch.stream, launches.front().stream);
  });
}

bool touches_device_memory(const clang::Stmt& statement) {
  if (const auto* call = dyn_cast<clang::CallExpr>(&statement)) {
    for (const clang::Expr* argument : call->arguments()) {
      const clang::QualType type = argument->getType();
      if (type->isPointerType() && !type->isFunctionPointerType()) {
        return true;
      }
    }
  }
  return std::ranges::any_of(statement.children(), [](const clang::Stmt* child) {
    return child != nullptr && touches_device_memory(*child);
  });
}

/// Whether every launch that starts before `statement` surely ends up before every one after it,
/// and nothing else happens.
bool is_transparent(const clang::Stmt& statement) {
  return (clang::isa<clang::DeclStmt>(statement) || clang::isa<clang::Expr>(statement)) &&
         !touches_device_memory(statement);
}

/// The variables and parameters that an expression mentions, and those their definitions mention.
void collect_locals(const clang::Stmt& statement, std::set<const clang::VarDecl*>& locals) {
  if (const auto* use = dyn_cast<clang::DeclRefExpr>(&statement)) {
    const auto* variable = dyn_cast<clang::VarDecl>(use->getDecl());
    const bool local = variable != nullptr && variable->isLocalVarDeclOrParm();
    if (local && locals.insert(variable).second && variable->hasInit()) {
      collect_locals(*variable->getInit(), locals);
    }
  }
  for (const clang::Stmt* child : statement.children()) {
    if (child != nullptr) {
      collect_locals(*child, locals);
    }
  }
}

bool mentions_function(const clang::Stmt& statement, const clang::FunctionDecl& function) {
  const auto* use = dyn_cast<clang::DeclRefExpr>(&statement);
  if (use != nullptr && use->getDecl()->getCanonicalDecl() == function.getCanonicalDecl()) {
    return true;
  }
  return std::ranges::any_of(statement.children(), [&](const clang::Stmt* child) {
    return child != nullptr && mentions_function(*child, function);
  });
}

} // namespace

struct DependenceGraph::Graph : boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                                                      boost::no_property, Dependence> {
  using adjacency_list::adjacency_list;
};

Pointer pointer_of(const clang::FunctionDecl& entry, const clang::Expr& argument) {
  const clang::Expr* expr = argument.IgnoreParenCasts();
  if (const auto* use = dyn_cast<clang::DeclRefExpr>(expr)) {
    const auto* variable = dyn_cast<clang::VarDecl>(use->getDecl());
    if (variable == nullptr || may_change(*entry.getBody(), *variable)) {
      return {};
    }
    if (clang::isa<clang::ParmVarDecl>(variable)) {
      return {variable, true};
    }
    const bool traced = variable->isLocalVarDecl() && variable->getInit() != nullptr;
    return traced ? pointer_of(entry, *variable->getInit()) : Pointer{};
  }
  if (const auto* sum = dyn_cast<clang::BinaryOperator>(expr); sum && sum->isAdditiveOp()) {
    const bool left = sum->getLHS()->getType()->isPointerType();
    return {pointer_of(entry, left ? *sum->getLHS() : *sum->getRHS()).base, false};
  }
  const auto* address = dyn_cast<clang::UnaryOperator>(expr);
  if (address != nullptr && address->getOpcode() == clang::UO_AddrOf) {
    const auto* element =
        dyn_cast<clang::ArraySubscriptExpr>(address->getSubExpr()->IgnoreParens());
    return element == nullptr ? Pointer{} : Pointer{pointer_of(entry, *element->getBase()).base};
  }
  return {};
}

std::optional<DependenceGraph> DependenceGraph::of(const Kernel& kernel) {
  DependenceGraph result;
  result.launches_ = find_launches(kernel);
  result.entry_ = find_entry(kernel);
  if (result.launches_.empty() || !one_stream(kernel, result.launches_)) {
    return std::nullopt;
  }
  std::size_t index = 0;
  for (const clang::Stmt* statement : result.entry_->getBody()->children()) {
    const std::size_t found = result.statements_.size();
    if (found < result.launches_.size() &&
        &expression_in(*statement) == result.launches_[found].call) {
      result.statements_.push_back(index);
    } else if (found != 0 && found < result.launches_.size() && !is_transparent(*statement)) {
      return std::nullopt;
    }
    ++index;
  }
  if (result.statements_.size() != result.launches_.size()) {
    return std::nullopt;
  }
  const auto graph = std::make_shared<Graph>(result.launches_.size());
  for (std::size_t later = 0; later < result.launches_.size(); ++later) {
    result.uses_.push_back(uses_of(result.launches_[later], *result.entry_));
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      const auto found = dependence_between(result.uses_[earlier], result.uses_[later]);
      if (found) {
        boost::add_edge(earlier, later, *found, *graph);
      }
    }
  }
  result.graph_ = graph;
  return result;
}

std::optional<Dependence> DependenceGraph::dependence(std::size_t earlier,
                                                      std::size_t later) const {
  const auto [edge, exists] = boost::edge(earlier, later, *graph_);
  return exists ? std::optional((*graph_)[edge]) : std::nullopt;
}

std::vector<std::size_t> DependenceGraph::needed_between(std::size_t first,
                                                         std::size_t last) const {
  std::vector<bool> reaches_last(launches_.size());
  reaches_last[last] = true;
  std::vector<std::size_t> needed;
  for (std::size_t launch = last; launch-- > first + 1;) { // edges lead to later launches only
    const auto [begin, end] = boost::adjacent_vertices(launch, *graph_);
    reaches_last[launch] =
        std::any_of(begin, end, [&](std::size_t later) { return reaches_last[later]; });
    if (reaches_last[launch]) {
      needed.insert(needed.begin(), launch);
    }
  }
  return needed;
}

bool DependenceGraph::may_move_before(const std::vector<std::size_t>& moved,
                                      std::size_t place) const {
  return std::ranges::all_of(moved, [&](std::size_t launch) {
    for (std::size_t passed = place; passed < launch; ++passed) {
      if (std::ranges::count(moved, passed) == 0 && dependence(passed, launch)) {
        return false;
      }
    }
    return is_known_before(*launches_[launch].call, place) && !is_prepared_since(place, launch);
  });
}

bool DependenceGraph::is_known_before(const clang::Expr& expression, std::size_t place) const {
  std::set<const clang::VarDecl*> locals;
  collect_locals(expression, locals);
  const clang::SourceManager& sources = entry_->getASTContext().getSourceManager();
  return std::ranges::all_of(locals, [&](const clang::VarDecl* local) {
    return !may_change(*entry_->getBody(), *local) &&
           sources.isBeforeInTranslationUnit(local->getLocation(),
                                             launches_[place].call->getBeginLoc());
  });
}

/// Whether a call between the two launches mentions the later one's kernel:
/// cudaFuncSetAttribute.
bool DependenceGraph::is_prepared_since(std::size_t place, std::size_t launch) const {
  const auto* body = clang::cast<clang::CompoundStmt>(entry_->getBody());
  return std::any_of(body->body_begin() + statements_[place],
                     body->body_begin() + statements_[launch], [&](const clang::Stmt* between) {
                       return !clang::isa<clang::CUDAKernelCallExpr>(expression_in(*between)) &&
                              mentions_function(*between, *launches_[launch].kernel);
                     });
}

bool DependenceGraph::is_only_consumer(std::size_t producer, std::size_t consumer) const {
  Uses written;
  for (const auto& [base, use] : uses_[producer]) {
    if (use.writes) {
      written[base] = {false, true};
    }
  }
  for (std::size_t between = producer + 1; between < consumer; ++between) {
    if (dependence_between(written, uses_[between])) {
      return false;
    }
  }
  return true;
}

const clang::ParmVarDecl* parameter_for(const DependenceGraph& graph, const Launch& launch,
                                        const clang::VarDecl* base) {
  const clang::ParmVarDecl* found = nullptr;
  for (unsigned i = 0; i < launch.kernel->getNumParams(); ++i) {
    const clang::ParmVarDecl* parameter = launch.kernel->getParamDecl(i);
    if (!parameter->getType()->isPointerType()) {
      continue;
    }
    const Pointer pointer = pointer_of(graph.entry(), *launch.arguments[i]);
    if (pointer.base == base) {
      if (found != nullptr || !pointer.at_start) {
        return nullptr;
      }
      found = parameter;
    }
  }
  return found;
}

const clang::ParmVarDecl* parameter_given(const Kernel& kernel, const Launch& launch,
                                          const clang::Expr* argument,
                                          const clang::ParmVarDecl& wanted) {
  for (unsigned i = 0; i < launch.kernel->getNumParams(); ++i) {
    const clang::ParmVarDecl* parameter = launch.kernel->getParamDecl(i);
    if (same_expression(kernel, launch.arguments[i], argument) &&
        kernel.ast().hasSameUnqualifiedType(parameter->getType(), wanted.getType()) &&
        !may_change(*launch.kernel->getBody(), *parameter)) {
      return parameter;
    }
  }
  return nullptr;
}

const clang::VarDecl* only_written(const Uses& uses) {
  const clang::VarDecl* written = nullptr;
  for (const auto& [base, use] : uses) {
    if (base == nullptr || (use.writes && written != nullptr)) {
      return nullptr;
    }
    written = use.writes ? base : written;
  }
  return written;
}

} // namespace evo
