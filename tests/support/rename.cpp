#include "tests/support/rename.hpp"

#include <cctype>
#include <set>
#include <vector>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>

#include "mutators/analysis/syntax_visitor.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

/// What the file declares, and where it uses a name of somebody else.
class Names : public SyntaxVisitor {
public:
  explicit Names(const clang::SourceManager& sources) : sources_(sources) {}

  bool VisitNamedDecl(clang::NamedDecl* decl) override {
    if (decl->getIdentifier() != nullptr && is_ours(decl->getLocation())) {
      const auto* function = clang::dyn_cast<clang::FunctionDecl>(decl);
      (function != nullptr && function->isExternC() ? kept : declared)
          .insert(decl->getName().str());
    }
    return true;
  }
  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
    note_use(use->getDecl(), use->getLocation());
    return true;
  }
  bool VisitMemberExpr(clang::MemberExpr* use) override {
    note_use(use->getMemberDecl(), use->getMemberLoc());
    return true;
  }

  std::set<std::string> declared;
  std::set<std::string> kept;
  std::set<unsigned> foreign_uses; // offsets

private:
  bool is_ours(clang::SourceLocation where) const {
    return sources_.isWrittenInMainFile(sources_.getSpellingLoc(where));
  }
  void note_use(const clang::Decl* decl, clang::SourceLocation where) {
    if (is_ours(where) && !is_ours(decl->getLocation())) {
      foreign_uses.insert(sources_.getFileOffset(sources_.getSpellingLoc(where)));
    }
  }

  const clang::SourceManager& sources_;
};

struct Token {
  unsigned offset = 0;
  std::string text;
  bool ours = false; // a name that the file declares
};

std::vector<Token> tokens(const std::string& source) {
  const Kernel kernel = parse(source);
  clang::ASTContext& ast = kernel.ast();
  const clang::SourceManager& sources = ast.getSourceManager();
  Names names(sources);
  names.TraverseDecl(ast.getTranslationUnitDecl());

  std::vector<Token> result;
  clang::Lexer lexer(sources.getMainFileID(), sources.getBufferOrFake(sources.getMainFileID()),
                     sources, ast.getLangOpts());
  clang::Token token;
  for (bool last = false; !last;) {
    last = lexer.LexFromRawLexer(token);
    const unsigned offset = sources.getFileOffset(token.getLocation());
    std::string text = source.substr(offset, token.getLength());
    const bool ours = token.is(clang::tok::raw_identifier) && names.declared.contains(text) &&
                      !names.kept.contains(text) && !names.foreign_uses.contains(offset);
    result.push_back({offset, std::move(text), ours});
  }
  return result;
}

/// Declared names in order of appearance.
std::vector<std::string> appearance(const std::vector<Token>& all) {
  std::vector<std::string> order;
  std::set<std::string> seen;
  for (const Token& token : all) {
    if (token.ours && seen.insert(token.text).second) {
      order.push_back(token.text);
    }
  }
  return order;
}

} // namespace

Renamed rename(const std::string& source) {
  const std::vector<Token> all = tokens(source);
  const std::vector<std::string> order = appearance(all);
  Renamed result;
  for (std::size_t i = 0; i < order.size(); ++i) {
    result.names[order[i]] = "name" + std::to_string(100 + order.size() - i);
  }
  std::size_t done = 0;
  for (const Token& token : all) {
    if (token.ours) {
      result.source += source.substr(done, token.offset - done) + result.names.at(token.text);
      done = token.offset + token.text.size();
    }
  }
  result.source += source.substr(done);
  return result;
}

std::string rename_label(const std::string& label,
                         const std::map<std::string, std::string>& names) {
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  std::string result;
  for (std::size_t i = 0; i < label.size();) {
    std::size_t end = i + 1;
    while (in_word(label[i]) && end < label.size() && in_word(label[end])) {
      ++end;
    }
    const std::string word = label.substr(i, end - i);
    const auto name = names.find(word);
    result += name == names.end() ? word : name->second;
    i = end;
  }
  return result;
}

std::string shape(const std::string& source) {
  const std::vector<Token> all = tokens(source);
  std::map<std::string, std::string> rank;
  for (const std::string& name : appearance(all)) {
    rank[name] = "<" + std::to_string(rank.size()) + ">";
  }
  std::string result;
  for (const Token& token : all) {
    result += (token.ours ? rank.at(token.text) : token.text) + "\n";
  }
  return result;
}

} // namespace evo::test
