#include "mutators/leaf_helpers.hpp"

#include <algorithm>
#include <iterator>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Stmt.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/ptx_instruction.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

std::size_t index_of(std::string_view helper) {
  const auto all = ptx_instructions();
  return static_cast<std::size_t>(std::ranges::find(all, helper, &PtxInstruction::name) -
                                  all.begin());
}

/// Where the line behind the last #include begins; 0 where there is none.
unsigned behind_includes(const std::string& source) {
  const std::size_t last = ("\n" + source).rfind("\n#include");
  return last == std::string::npos ? 0 : static_cast<unsigned>(source.find('\n', last) + 1);
}

} // namespace

std::string_view leaf_helper_text(std::string_view helper) {
  const std::size_t name = leaf_helpers_text.find(" " + std::string(helper) + "(");
  const std::size_t begin = leaf_helpers_text.rfind("\n\n", name) + 2;
  const std::size_t end =
      std::min(leaf_helpers_text.find("\n\n", name), leaf_helpers_text.size() - 1);
  return leaf_helpers_text.substr(begin, end + 1 - begin);
}

LeafHelpers::LeafHelpers(const Kernel& kernel) : kernel_(kernel), names_(kernel) {
  const auto& sources = kernel.ast().getSourceManager();
  for (const clang::Decl* declaration : kernel.ast().getTranslationUnitDecl()->decls()) {
    const auto* function = clang::dyn_cast<clang::FunctionDecl>(declaration);
    if (function == nullptr || !sources.isInMainFile(function->getLocation()) ||
        function->hasAttr<clang::CUDAGlobalAttr>()) {
      continue;
    }
    const clang::GCCAsmStmt* assembly = assembly_in(*function);
    if (const auto* instruction = assembly == nullptr ? nullptr : ptx_instruction(*assembly)) {
      present_.emplace(index_of(instruction->name), function);
    }
  }
}

const clang::FunctionDecl* LeafHelpers::find(std::string_view helper) const {
  const auto found = present_.find(index_of(helper));
  return found == present_.end() ? nullptr : found->second;
}

std::string LeafHelpers::use(std::string_view helper) {
  if (const clang::FunctionDecl* function = find(helper)) {
    return function->getNameAsString();
  }
  const auto [entry, added] = added_.try_emplace(index_of(helper));
  if (added) {
    entry->second = names_.fresh(std::string(helper));
  }
  return entry->second;
}

/// Before the next helper of the file, or behind the last.
unsigned LeafHelpers::place(std::size_t instruction) const {
  const auto next = present_.upper_bound(instruction);
  if (next != present_.end()) {
    return offset_before(kernel_, *next->second).value_or(0);
  }
  if (present_.empty()) {
    return behind_includes(kernel_.source());
  }
  const auto end = span_of(kernel_, clang::SourceRange(std::prev(next)->second->getEndLoc()));
  return end ? end->end + 1 : 0;
}

std::vector<Edit> LeafHelpers::edits() const {
  std::map<unsigned, std::string> texts; // by offset
  for (const auto& [instruction, name] : added_) {
    const std::string_view helper = ptx_instructions()[instruction].name;
    std::string text(leaf_helper_text(helper));
    text.replace(text.find(" " + std::string(helper) + "(") + 1, helper.size(), name);
    const unsigned offset = place(instruction);
    const bool before = present_.upper_bound(instruction) != present_.end();
    texts[offset] += before ? text + "\n" : "\n" + text;
  }
  std::vector<Edit> result;
  for (auto& [offset, text] : texts) {
    result.push_back({offset, 0, std::move(text)});
  }
  return result;
}

} // namespace evo
