#include "fitness/cpu/lowering.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>
#include <fmt/format.h>

namespace evo::cpu {

std::optional<Span> Lowering::written(clang::SourceRange range) const {
  const clang::ASTContext& ast = kernel_.ast();
  const clang::SourceManager& sources = ast.getSourceManager();
  const clang::CharSourceRange in_file = clang::Lexer::makeFileCharRange(
      clang::CharSourceRange::getTokenRange(range), sources, ast.getLangOpts());
  if (in_file.isInvalid() || !sources.isInMainFile(in_file.getBegin())) {
    return std::nullopt;
  }
  return Span{sources.getFileOffset(in_file.getBegin()), sources.getFileOffset(in_file.getEnd())};
}

std::string Lowering::text(Span span) const {
  return kernel_.source().substr(span.begin, span.length());
}

int Lowering::site(Span span) {
  const int next = static_cast<int>(sites_.size());
  return sites_.try_emplace({span.begin, span.end}, next).first->second;
}

void Lowering::note_element_size(long bytes) {
  if (bytes == 1 || bytes == 2) {
    granule_ = std::min(granule_, bytes);
  }
}

void Lowering::fail(clang::SourceLocation where, const std::string& what) {
  if (failure_) {
    return;
  }
  const clang::SourceManager& sources = kernel_.ast().getSourceManager();
  const auto place = sources.getPresumedLoc(sources.getExpansionLoc(where));
  failure_ =
      fmt::format("{}:{}: {} cannot run on the CPU", place.getLine(), place.getColumn(), what);
}

std::string Lowering::module_text() const {
  constexpr std::size_t shown = 80;
  std::vector<std::string> table(sites_.size() + 1, "{\"\", 0}"); // an array needs an element
  for (const auto& [span, number] : sites_) {
    const auto line =
        1 + std::ranges::count(std::string_view(kernel_.source()).substr(0, span.first), '\n');
    std::string text = kernel_.source().substr(span.first, span.second - span.first);
    std::ranges::replace(text, '\n', ' ');
    if (text.size() > shown) {
      text = text.substr(0, shown) + "...";
    }
    table[static_cast<std::size_t>(number)] = fmt::format("{{{}, {}}}", string_literal(text), line);
  }
  return fmt::format(
      "static const evo_gpu::Site evo_gpu_sites[] = {{{}}};\n"
      "extern \"C\" {{\n"
      "extern __attribute__((visibility(\"default\"))) const evo_gpu::Module evo_gpu_module;\n"
      "const evo_gpu::Module evo_gpu_module = {{&evo_gpu::host, &evo_gpu::context, evo_gpu_sites, "
      "{}, {}, {}}};\n"
      "}}\n",
      fmt::join(table, ",\n"), sites_.size(), granule_, kernel_.target().shared_bytes_per_block);
}

std::string string_literal(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    result += c;
  }
  return result + '"';
}

} // namespace evo::cpu
