#include "mutators/kernel.hpp"

#include <utility>
#include <vector>

#include <clang/Frontend/ASTUnit.h>
#include <clang/Tooling/Tooling.h>

#include "mutators/cuda_declarations.hpp"

namespace evo {
namespace {

constexpr const char* file_name = "kernel.cu";
constexpr const char* include_folder = "/evo/include/";

/// Keeps errors as "line:column: message", and the first missing header.
class ErrorCollector : public clang::DiagnosticConsumer {
public:
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level,
                        const clang::Diagnostic& info) override {
    DiagnosticConsumer::HandleDiagnostic(level, info);
    if (level < clang::DiagnosticsEngine::Error) {
      return;
    }
    llvm::SmallString<128> text;
    info.FormatDiagnostic(text);
    std::string where;
    if (info.hasSourceManager() && info.getLocation().isValid()) {
      const auto place = info.getSourceManager().getPresumedLoc(info.getLocation());
      where = std::to_string(place.getLine()) + ":" + std::to_string(place.getColumn()) + ": ";
    }
    std::string message = where + std::string(text);
    if (text.str().contains("file not found")) {
      message += " (evo parses kernels against its own CUDA declarations, which provide " +
                 std::string(provided_headers()) +
                 "; remove the include, or declare what the kernel needs)";
    }
    errors_ += (errors_.empty() ? "" : "\n") + message;
  }

  const std::string& errors() const { return errors_; }

private:
  std::string errors_;
};

std::vector<std::string> arguments(const Target& target) {
  return {"-xcuda",
          "--cuda-device-only",
          "--cuda-gpu-arch=" + target.arch,
          "-nocudainc",
          "-nocudalib",
          "-nostdinc",
          "-nostdinc++",
          "-std=c++17",
          std::string("-I") + include_folder,
          "-include",
          std::string(include_folder) + "cuda_runtime.h",
          "-ferror-limit=3",
          "-Wno-unknown-cuda-version"};
}

} // namespace

Kernel::Kernel(std::string source, Target target, std::unique_ptr<clang::ASTUnit> unit)
    : source_(std::move(source)), target_(std::move(target)), unit_(std::move(unit)) {}
Kernel::Kernel(Kernel&&) noexcept = default;
Kernel& Kernel::operator=(Kernel&&) noexcept = default;
Kernel::~Kernel() = default;

clang::ASTContext& Kernel::ast() const {
  return unit_->getASTContext();
}

std::variant<Kernel, ParseError> Kernel::parse(std::string source, const Target& target) {
  return parse_as(std::move(source), target, {"-w"});
}

std::variant<Kernel, ParseError> Kernel::parse_as(std::string source, const Target& target,
                                                  const std::vector<std::string>& options) {
  clang::tooling::FileContentMappings headers;
  for (const EmbeddedHeader& header : embedded_headers()) {
    headers.emplace_back(include_folder + std::string(header.name), std::string(header.text));
  }
  std::vector<std::string> all = arguments(target);
  all.insert(all.end(), options.begin(), options.end());
  ErrorCollector collector;
  auto unit = clang::tooling::buildASTFromCodeWithArgs(
      source, all, file_name, "evo", std::make_shared<clang::PCHContainerOperations>(),
      [](const clang::tooling::CommandLineArguments& unchanged, llvm::StringRef) {
        return unchanged;
      },
      headers, &collector);
  if (!unit || !collector.errors().empty()) {
    return ParseError{collector.errors().empty() ? "the compiler gave no reason"
                                                 : collector.errors()};
  }
  return Kernel(std::move(source), target, std::move(unit));
}

} // namespace evo
