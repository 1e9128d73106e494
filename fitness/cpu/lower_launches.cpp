#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/ExprCXX.h>
#include <fmt/format.h>

#include "fitness/cpu/lowering.hpp"
#include "mutators/analysis/syntax_visitor.hpp"

namespace evo::cpu {
namespace {

/// The most threads per block that a kernel declares it is launched with.
int launch_bound(const Lowering& lowering, const clang::FunctionDecl& kernel) {
  const auto* bounds = kernel.getAttr<clang::CUDALaunchBoundsAttr>();
  clang::Expr::EvalResult threads;
  if (bounds != nullptr &&
      bounds->getMaxThreads()->EvaluateAsInt(threads, lowering.kernel().ast())) {
    return static_cast<int>(threads.Val.getInt().getExtValue());
  }
  return lowering.kernel().target().threads_per_block;
}

class HostCode : public SyntaxVisitor {
public:
  explicit HostCode(Lowering& lowering) : lowering_(lowering) {}

  /// kernel<<<grid, block>>>(a, b) to launch("kernel", kernel, bound, grid, block)(call, a, b).
  bool VisitCUDAKernelCallExpr(clang::CUDAKernelCallExpr* call) override {
    const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(call->getCallee()->IgnoreParenImpCasts());
    const clang::FunctionDecl* kernel = call->getDirectCallee();
    if (name == nullptr || kernel == nullptr) {
      lowering_.fail(call->getBeginLoc(), "a launch through a pointer");
    } else if (kernel->getPrimaryTemplate() != nullptr && !name->hasExplicitTemplateArgs()) {
      lowering_.fail(call->getBeginLoc(), "a launch that deduces template arguments");
    } else {
      lower(*call, *name, *kernel);
    }
    return !lowering_.failed();
  }

private:
  void lower(const clang::CUDAKernelCallExpr& call, const clang::DeclRefExpr& name,
             const clang::FunctionDecl& kernel) {
    const clang::CallExpr& configuration = *call.getConfig();
    const auto callee = lowering_.written(name.getSourceRange());
    const auto open = lowering_.written(configuration.getBeginLoc());
    const auto close = lowering_.written(configuration.getRParenLoc());
    if (!callee || !open || !close) {
      lowering_.fail(call.getBeginLoc(), "a launch in the body of a macro");
      return;
    }
    const std::string function = lowering_.text(*callee);
    lowering_.wraps().replace({callee->begin, open->end},
                              fmt::format("evo_gpu::launch(\"{}\", {}, {}, ",
                                          kernel.getNameAsString(), function,
                                          launch_bound(lowering_, kernel)));
    const std::size_t arguments = lowering_.kernel().source().find('(', close->end);
    lowering_.wraps().replace(
        {close->begin, static_cast<unsigned>(arguments) + 1},
        fmt::format(")([=](auto... evo_arguments) {{ {}(evo_arguments...); }}{}", function,
                    call.getNumArgs() == 0 ? "" : ", "));
  }

  Lowering& lowering_;
};

} // namespace

void lower_launches(Lowering& lowering, clang::FunctionDecl& function) {
  HostCode(lowering).TraverseDecl(&function);
}

} // namespace evo::cpu
