#include "mutators/names.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>

#include "mutators/analysis/syntax_visitor.hpp"

namespace evo {
namespace {

class NameCollector : public SyntaxVisitor {
public:
  bool VisitVarDecl(clang::VarDecl* variable) override {
    names.insert(variable->getNameAsString());
    return true;
  }
  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
    names.insert(use->getDecl()->getNameAsString());
    return true;
  }

  std::set<std::string> names;
};

class FileScope : public SyntaxVisitor {
public:
  explicit FileScope(const clang::SourceManager& sources) : sources_(sources) {}

  bool VisitNamedDecl(clang::NamedDecl* decl) override {
    if (decl->getDeclContext()->isFileContext() && sources_.isInMainFile(decl->getLocation())) {
      names.insert(decl->getNameAsString());
    }
    return true;
  }

  std::set<std::string> names;

private:
  const clang::SourceManager& sources_;
};

} // namespace

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

std::set<std::string> names_in(const clang::FunctionDecl& function) {
  NameCollector collector;
  collector.TraverseDecl(const_cast<clang::FunctionDecl*>(&function));
  return std::move(collector.names);
}

std::set<std::string> names_at_file_scope(const Kernel& kernel) {
  FileScope scope(kernel.ast().getSourceManager());
  scope.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  return std::move(scope.names);
}

} // namespace evo
