#include "mutators/analysis/launches.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/RecursiveASTVisitor.h>

namespace evo {
namespace {

class LaunchCollector : public clang::RecursiveASTVisitor<LaunchCollector> {
public:
  bool VisitCUDAKernelCallExpr(clang::CUDAKernelCallExpr* call) {
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

class EntryCollector : public clang::RecursiveASTVisitor<EntryCollector> {
public:
  bool VisitFunctionDecl(clang::FunctionDecl* function) {
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

} // namespace

const clang::FunctionDecl* find_entry(const Kernel& kernel) {
  EntryCollector collector;
  collector.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  return collector.entries.size() == 1 ? collector.entries.front() : nullptr;
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

} // namespace evo
