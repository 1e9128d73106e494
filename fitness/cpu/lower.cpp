#include "fitness/cpu/lower.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>
#include <fmt/format.h>

#include "fitness/cpu/lowering.hpp"
#include "fitness/cpu/runtime_text.hpp"
#include "mutators/analysis/syntax_visitor.hpp"

namespace evo::cpu {
namespace {

/// Every function of the main file that has code: instantiations instead of templates.
class FunctionCollector : public SyntaxVisitor {
public:
  explicit FunctionCollector(const Lowering& lowering) : lowering_(lowering) {}

  bool shouldVisitTemplateInstantiations() const override { return true; }
  bool shouldVisitImplicitCode() const override { return true; } // generic lambdas

  bool VisitFunctionDecl(clang::FunctionDecl* function) override {
    if (function->isThisDeclarationADefinition() && !function->isDependentContext() &&
        !function->isDefaulted() && lowering_.written(function->getLocation())) {
      functions.push_back(function);
    }
    return true;
  }

  std::vector<clang::FunctionDecl*> functions;

private:
  const Lowering& lowering_;
};

/// Blanks the lines that include a header: the runtime holds all that parsing knew.
void remove_includes(Lowering& lowering) {
  const std::string& source = lowering.kernel().source();
  for (std::size_t begin = 0; begin < source.size();) {
    const std::size_t end = std::min(source.find('\n', begin), source.size());
    const std::size_t hash = source.find_first_not_of(" \t", begin);
    if (hash < end && source[hash] == '#') {
      const std::size_t word = source.find_first_not_of(" \t", hash + 1);
      if (word < end && std::string_view(source).substr(word).starts_with("include")) {
        lowering.wraps().replace({static_cast<unsigned>(begin), static_cast<unsigned>(end)}, "");
      }
    }
    begin = end + 1;
  }
}

/// "860" for "sm_86".
std::string arch_macro(const Target& target) {
  std::string digits;
  std::ranges::copy_if(target.arch, std::back_inserter(digits),
                       [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  return digits + "0";
}

bool runs_on_device(const clang::FunctionDecl& function) {
  return function.hasAttr<clang::CUDAGlobalAttr>() || function.hasAttr<clang::CUDADeviceAttr>();
}

} // namespace

std::variant<std::string, BuildFailure> lower(const Kernel& kernel) {
  Lowering lowering(kernel);
  FunctionCollector collector(lowering);
  collector.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  for (clang::FunctionDecl* function : collector.functions) {
    if (runs_on_device(*function)) {
      lower_device_code(lowering, *function);
    } else {
      lower_launches(lowering, *function);
    }
  }
  if (lowering.failed()) {
    return BuildFailure{Verdict::NoBuild, lowering.failure()};
  }
  remove_includes(lowering);
  return fmt::format("{}\n"
                     "#define __CUDA_ARCH__ {}\n"
                     "namespace evo_kernel {{\n"
                     "using namespace evo_gpu;\n"
                     "#pragma GCC visibility push(default)\n"
                     "#line 1 \"kernel.cu\"\n"
                     "{}\n"
                     "#pragma GCC visibility pop\n"
                     "}} // namespace evo_kernel\n"
                     "{}",
                     runtime_text, arch_macro(kernel.target()),
                     apply_edits(kernel.source(), lowering.wraps().edits()),
                     lowering.module_text());
}

} // namespace evo::cpu
