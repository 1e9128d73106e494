#include "mutators/analysis/launches.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/constants.hpp"
#include "mutators/analysis/interpreter.hpp"
#include "mutators/analysis/syntax_visitor.hpp"

namespace evo {
namespace {

class LaunchCollector : public SyntaxVisitor {
public:
  bool VisitCUDAKernelCallExpr(clang::CUDAKernelCallExpr* call) override {
    calls.push_back(call);
    return true;
  }

  std::vector<const clang::CUDAKernelCallExpr*> calls;
};

std::vector<const clang::CUDAKernelCallExpr*> calls_in(const clang::FunctionDecl& function) {
  LaunchCollector collector;
  collector.TraverseStmt(function.getBody());
  return collector.calls;
}

class AttributeCollector : public SyntaxVisitor {
public:
  explicit AttributeCollector(const clang::FunctionDecl& function) : function_(function) {}

  bool VisitCallExpr(clang::CallExpr* call) override {
    const clang::FunctionDecl* callee = call->getDirectCallee();
    const auto* target =
        callee != nullptr && callee->getNameAsString() == "cudaFuncSetAttribute"
            ? clang::dyn_cast<clang::DeclRefExpr>(call->getArg(0)->IgnoreParenCasts())
            : nullptr;
    if (target != nullptr &&
        target->getDecl()->getCanonicalDecl() == function_.getCanonicalDecl()) {
      calls.push_back(call);
    }
    return true;
  }

  std::vector<const clang::CallExpr*> calls;

private:
  const clang::FunctionDecl& function_;
};

class EntryCollector : public SyntaxVisitor {
public:
  bool VisitFunctionDecl(clang::FunctionDecl* function) override {
    if (function->isThisDeclarationADefinition() && function->isExternC() &&
        !calls_in(*function).empty()) {
      entries.push_back(function);
    }
    return true;
  }

  std::vector<const clang::FunctionDecl*> entries;
};

const clang::Expr* written(const clang::CallExpr& config, unsigned index) {
  const clang::Expr* argument = config.getArg(index);
  return clang::isa<clang::CXXDefaultArgExpr>(argument) ? nullptr : argument;
}

Launch read(const clang::CUDAKernelCallExpr& call) {
  const clang::CallExpr& config = *call.getConfig();
  Launch launch{.call = &call,
                .kernel =
                    call.getDirectCallee() ? call.getDirectCallee()->getDefinition() : nullptr,
                .grid = config.getArg(0),
                .block = config.getArg(1),
                .shared_bytes = written(config, 2),
                .stream = written(config, 3),
                .arguments = {}};
  launch.arguments.assign(call.arg_begin(), call.arg_end());
  return launch;
}

constexpr std::int64_t default_shared_limit = 48 * 1024;

Failure unknown(std::string reason) {
  return {Failure::Kind::Unknown, std::move(reason)};
}

std::int64_t integer(const Value& value, const char* what) {
  const auto* integers = std::get_if<Ints>(&value);
  if (integers == nullptr) {
    throw unknown(std::string(what) + " of a launch is not known");
  }
  return (*integers)[0];
}

Extent3 extent(const Value& value, const char* what) {
  const auto* record = std::get_if<Record>(&value);
  if (record == nullptr || record->fields.size() != 3) {
    throw unknown(std::string(what) + " of a launch is not known");
  }
  const auto part = [&](int i) { return static_cast<int>(integer(record->fields[i], what)); };
  return {part(0), part(1), part(2)};
}

/// Runs the entry and keeps what it launches.
class EntryRun {
public:
  EntryRun(const Kernel& kernel, const Assignment& values)
      : interpreter_(kernel, values, step_limit) {}

  std::vector<EvaluatedLaunch> run(const clang::FunctionDecl& entry,
                                   const std::vector<std::int64_t>& dims) {
    interpreter_.run_host(
        entry, arguments(entry, dims),
        [this](const clang::CUDAKernelCallExpr& call) { launch(read(call)); },
        [this](const clang::FunctionDecl& function, const std::vector<Value>& values) {
          if (function.getNameAsString() == "cudaFuncSetAttribute") {
            set_attribute(values);
          }
        });
    return std::move(launches_);
  }

private:
  static constexpr std::int64_t step_limit = 100'000;

  static std::vector<Argument> arguments(const clang::FunctionDecl& entry,
                                         const std::vector<std::int64_t>& dims) {
    std::vector<Argument> result;
    std::size_t next = 0;
    for (const clang::ParmVarDecl* parameter : entry.parameters()) {
      const clang::QualType type = parameter->getType();
      if (type->isIntegerType() && next < dims.size()) {
        result.emplace_back(dims[next++]);
      } else if (type->isPointerType() && !type->getPointeeType()->isRecordType()) {
        result.emplace_back(Buffer{static_cast<int>(parameter->getFunctionScopeIndex()), 0});
      } else {
        result.emplace_back(std::monostate{});
      }
    }
    return result;
  }

  void launch(Launch written) {
    if (written.kernel == nullptr) {
      throw unknown("a launched kernel has no body in this file");
    }
    EvaluatedLaunch result{.launch = written,
                           .grid = extent(interpreter_.rvalue(*written.grid), "the grid"),
                           .block = extent(interpreter_.rvalue(*written.block), "the block"),
                           .arguments = {}};
    if (written.shared_bytes != nullptr) {
      result.shared_bytes =
          integer(interpreter_.rvalue(*written.shared_bytes), "the shared memory");
    }
    const auto limit = limits_.find(written.kernel->getCanonicalDecl());
    result.shared_limit = limit != limits_.end() ? limit->second : default_shared_limit;
    for (const clang::Expr* argument : written.arguments) {
      result.arguments.push_back(as_argument(interpreter_.rvalue(*argument)));
    }
    launches_.push_back(std::move(result));
  }

  Argument as_argument(const Value& value) const {
    if (const auto* integers = std::get_if<Ints>(&value)) {
      return (*integers)[0];
    }
    if (const auto* place = std::get_if<Place>(&value)) {
      return Buffer{interpreter_.arrays()[place->array].buffer, place->offset[0]};
    }
    return std::monostate{};
  }

  void set_attribute(const std::vector<Value>& values) {
    const auto* function = std::get_if<const clang::FunctionDecl*>(&values[0]);
    const std::int64_t attribute = integer(values[1], "an attribute");
    constexpr std::int64_t max_dynamic_shared_size = 8; // cudaFuncAttributeMaxDynamicShared...
    if (function != nullptr && attribute == max_dynamic_shared_size) {
      std::int64_t& limit = limits_[(*function)->getCanonicalDecl()];
      limit = std::max(default_shared_limit, integer(values[2], "the shared memory"));
    }
  }

  Interpreter interpreter_;
  std::map<const clang::FunctionDecl*, std::int64_t> limits_;
  std::vector<EvaluatedLaunch> launches_;
};

} // namespace

const clang::FunctionDecl* find_entry(const Kernel& kernel) {
  EntryCollector collector;
  collector.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  return collector.entries.size() == 1 ? collector.entries.front() : nullptr;
}

const clang::FunctionDecl* workspace_function(const Kernel& kernel,
                                              const clang::FunctionDecl& entry) {
  const clang::ASTContext& ast = kernel.ast();
  for (const clang::NamedDecl* found : ast.getTranslationUnitDecl()->lookup(
           &ast.Idents.get(entry.getNameAsString() + "_workspace"))) {
    if (const auto* function = clang::dyn_cast<clang::FunctionDecl>(found)) {
      return function->getDefinition();
    }
  }
  return nullptr;
}

std::set<int> workspace_buffers(const Kernel& kernel) {
  std::set<int> result;
  if (const clang::FunctionDecl* entry = find_entry(kernel)) {
    for (const clang::ParmVarDecl* parameter : entry->parameters()) {
      if (parameter->getType()->isVoidPointerType()) {
        result.insert(static_cast<int>(parameter->getFunctionScopeIndex()));
      }
    }
  }
  return result;
}

std::vector<Launch> find_launches(const Kernel& kernel) {
  const clang::FunctionDecl* entry = find_entry(kernel);
  if (entry == nullptr) {
    return {};
  }
  std::vector<Launch> launches;
  for (const clang::CUDAKernelCallExpr* call : calls_in(*entry)) {
    launches.push_back(read(*call));
  }
  const bool complete =
      std::ranges::all_of(launches, [](const Launch& launch) { return launch.kernel != nullptr; });
  return complete ? launches : std::vector<Launch>{};
}

std::vector<const clang::CallExpr*> attribute_calls(const Kernel& kernel,
                                                    const clang::FunctionDecl& function) {
  AttributeCollector collector(function);
  if (const clang::FunctionDecl* entry = find_entry(kernel)) {
    collector.TraverseStmt(entry->getBody());
  }
  return collector.calls;
}

Block EvaluatedLaunch::block_at(Extent3 index) const {
  return {.kernel = launch.kernel,
          .grid = grid,
          .block = block,
          .index = index,
          .arguments = arguments,
          .dynamic_shared_bytes = shared_bytes};
}

std::variant<std::vector<EvaluatedLaunch>, Failure>
evaluate_launches(const Kernel& kernel, const std::vector<std::int64_t>& dims,
                  const Assignment& values) {
  const clang::FunctionDecl* entry = find_entry(kernel);
  if (entry == nullptr) {
    return unknown("the file has no single entry that launches kernels");
  }
  try {
    return EntryRun(kernel, values).run(*entry, dims);
  } catch (Failure& failure) {
    return std::move(failure);
  }
}

std::vector<std::int64_t> EntryDims::at(std::int64_t size) const {
  std::vector<std::int64_t> dims;
  std::ranges::transform(fixed, std::back_inserter(dims),
                         [&](const auto& value) { return value.value_or(size); });
  return dims;
}

std::vector<EvaluatedLaunch> launches_at(const Kernel& kernel, const EntryDims& dims,
                                         std::int64_t size) {
  auto result = evaluate_launches(kernel, dims.at(size));
  auto* launches = std::get_if<std::vector<EvaluatedLaunch>>(&result);
  return launches != nullptr ? std::move(*launches) : std::vector<EvaluatedLaunch>{};
}

std::optional<EntryDims> find_dims(const Kernel& kernel) {
  const clang::FunctionDecl* entry = find_entry(kernel);
  if (entry == nullptr) {
    return std::nullopt;
  }
  constexpr std::int64_t probe = 1009; // no constant's value by accident
  const auto dims = static_cast<std::size_t>(
      std::ranges::count_if(entry->parameters(), [](const clang::ParmVarDecl* parameter) {
        return parameter->getType()->isIntegerType();
      }));
  std::set<std::int64_t> values;
  for (const Constant& constant : find_constants(kernel)) {
    values.insert(constant.value);
  }
  const auto launches = [&](const EntryDims& candidate) {
    const auto result = evaluate_launches(kernel, candidate.at(probe));
    const auto* list = std::get_if<std::vector<EvaluatedLaunch>>(&result);
    return list != nullptr && !list->empty();
  };
  EntryDims candidate{std::vector<std::optional<std::int64_t>>(dims)};
  if (launches(candidate)) {
    return candidate;
  }
  for (std::size_t dim = 0; dim < dims; ++dim) {
    for (const std::int64_t value : values) {
      candidate.fixed[dim] = value;
      if (launches(candidate)) {
        return candidate;
      }
    }
    candidate.fixed[dim].reset();
  }
  return std::nullopt;
}

} // namespace evo
