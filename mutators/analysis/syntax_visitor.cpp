#include "mutators/analysis/syntax_visitor.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/RecursiveASTVisitor.h>

namespace evo {
namespace {

/// Takes each step of Clang's walk through the virtual functions.
class Walker : public clang::RecursiveASTVisitor<Walker> {
public:
  explicit Walker(SyntaxVisitor& visitor) : visitor_(visitor) {}

  bool shouldVisitTemplateInstantiations() const {
    return visitor_.shouldVisitTemplateInstantiations();
  }
  bool shouldVisitImplicitCode() const { return visitor_.shouldVisitImplicitCode(); }

  bool TraverseDecl(clang::Decl* node) { return visitor_.TraverseDecl(node); }
  bool TraverseStmt(clang::Stmt* node) { return visitor_.TraverseStmt(node); }
#define ABSTRACT_DECL(Declaration)
#define DECL(Name, Base)                                                                           \
  bool Traverse##Name##Decl(clang::Name##Decl* node) { return visitor_.Traverse##Name##Decl(node); }
#include <clang/AST/DeclNodes.inc>
#define ABSTRACT_STMT(Statement)
#define STMT(Name, Base)                                                                           \
  bool Traverse##Name(clang::Name* node) { return visitor_.Traverse##Name(node); }
#include <clang/AST/StmtNodes.inc>

  bool VisitDecl(clang::Decl* node) { return visitor_.VisitDecl(node); }
  bool VisitStmt(clang::Stmt* node) { return visitor_.VisitStmt(node); }
#define DECL(Name, Base)                                                                           \
  bool Visit##Name##Decl(clang::Name##Decl* node) { return visitor_.Visit##Name##Decl(node); }
#include <clang/AST/DeclNodes.inc>
#define STMT(Name, Base)                                                                           \
  bool Visit##Name(clang::Name* node) { return visitor_.Visit##Name(node); }
#include <clang/AST/StmtNodes.inc>
#define ABSTRACT_TYPELOC(Name, Base)
#define TYPELOC(Name, Base)                                                                        \
  bool Visit##Name##TypeLoc(clang::Name##TypeLoc node) {                                           \
    return visitor_.Visit##Name##TypeLoc(node);                                                    \
  }
#include <clang/AST/TypeLocNodes.def>

private:
  SyntaxVisitor& visitor_;
};

using Default = clang::RecursiveASTVisitor<Walker>;

} // namespace

bool SyntaxVisitor::TraverseAST(clang::ASTContext& ast) {
  return Walker(*this).TraverseAST(ast);
}

bool SyntaxVisitor::TraverseDecl(clang::Decl* node) {
  return Walker(*this).Default::TraverseDecl(node);
}

bool SyntaxVisitor::TraverseStmt(clang::Stmt* node) {
  return Walker(*this).Default::TraverseStmt(node);
}

#define ABSTRACT_DECL(Declaration)
#define DECL(Name, Base)                                                                           \
  bool SyntaxVisitor::Traverse##Name##Decl(clang::Name##Decl* node) {                              \
    return Walker(*this).Default::Traverse##Name##Decl(node);                                      \
  }
#include <clang/AST/DeclNodes.inc>
#define ABSTRACT_STMT(Statement)
#define STMT(Name, Base)                                                                           \
  bool SyntaxVisitor::Traverse##Name(clang::Name* node) {                                          \
    return Walker(*this).Default::Traverse##Name(node);                                            \
  }
#include <clang/AST/StmtNodes.inc>
#define ABSTRACT_TYPELOC(Name, Base)
#define TYPELOC(Name, Base)                                                                        \
  bool SyntaxVisitor::Visit##Name##TypeLoc(clang::Name##TypeLoc) {                                 \
    return true;                                                                                   \
  }
#include <clang/AST/TypeLocNodes.def>

} // namespace evo
