#include "mutators/names.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/Lex/Lexer.h>

namespace evo {

Names::Names(const Kernel& kernel) {
  const std::string& source = kernel.source();
  const char* begin = source.c_str();
  clang::Lexer lexer(clang::SourceLocation(), kernel.ast().getLangOpts(), begin, begin,
                     begin + source.size());
  clang::Token token;
  for (bool last = false; !last;) {
    last = lexer.LexFromRawLexer(token);
    if (token.is(clang::tok::raw_identifier)) {
      used_.insert(token.getRawIdentifier().str());
    }
  }
}

std::string Names::fresh(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 2; !used_.insert(name).second; ++i) {
    name = wanted + "_" + std::to_string(i);
  }
  return name;
}

} // namespace evo
