#include "mutators/rewrite.hpp"

#include <algorithm>
#include <stdexcept>

#include <clang/Format/Format.h>
#include <clang/Tooling/Core/Replacement.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>

namespace evo {

void sort_edits(std::vector<Edit>& edits) {
  std::ranges::stable_sort(edits, [](const Edit& a, const Edit& b) {
    return std::pair(a.offset, a.length != 0) < std::pair(b.offset, b.length != 0);
  });
}

std::string apply_edits(std::string_view source, const std::vector<Edit>& edits) {
  std::string result;
  std::size_t done = 0;
  for (const Edit& edit : edits) {
    if (edit.offset < done || edit.offset + std::size_t{edit.length} > source.size()) {
      throw std::logic_error("edits overlap, are unsorted or lie outside the source, at offset " +
                             std::to_string(edit.offset));
    }
    result += source.substr(done, edit.offset - done);
    result += edit.text;
    done = edit.offset + std::size_t{edit.length};
  }
  result += source.substr(done);
  return result;
}

std::string canonical(std::string_view source) {
  clang::format::FormatStyle style =
      clang::format::getLLVMStyle(clang::format::FormatStyle::LK_Cpp);
  style.ColumnLimit = 100;
  style.SortIncludes = {};
  const llvm::StringRef code(source.data(), source.size());
  const auto edits =
      clang::format::reformat(style, code, {clang::tooling::Range(0, code.size())}, "kernel.cu");
  auto formatted = clang::tooling::applyAllReplacements(code, edits);
  if (!formatted) {
    throw std::logic_error("libFormat's edits do not apply: " +
                           llvm::toString(formatted.takeError()));
  }
  return *formatted;
}

std::string digest(std::string_view text) {
  const auto bytes = llvm::SHA256::hash(
      llvm::ArrayRef(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
  return llvm::toHex(bytes, /*LowerCase=*/true);
}

} // namespace evo
