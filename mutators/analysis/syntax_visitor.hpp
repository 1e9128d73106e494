// Walks over syntax trees.
#pragma once

namespace clang {
class ASTContext;
class Decl;
class Stmt;
#define DECL(Name, Base) class Name##Decl;
#include <clang/AST/DeclNodes.inc>
#define STMT(Name, Base) class Name; // NOLINT(bugprone-macro-parentheses): a declaration's name
#include <clang/AST/StmtNodes.inc>
#define ABSTRACT_TYPELOC(Name, Base)
#define TYPELOC(Name, Base) class Name##TypeLoc;
#include <clang/AST/TypeLocNodes.def>
} // namespace clang

namespace evo {

/// clang::RecursiveASTVisitor with virtual functions instead of a template's parameter: every
/// instantiation of that template takes a compiler some ten seconds, and this is the only one. A
/// Visit function sees each node of its class on the way down, and a Traverse function may keep the
/// walk from what is below one; either ends the walk by returning false.
class SyntaxVisitor {
public:
  virtual ~SyntaxVisitor() = default;

  virtual bool shouldVisitTemplateInstantiations() const { return false; }
  virtual bool shouldVisitImplicitCode() const { return false; }

  /// Everything that was parsed.
  bool TraverseAST(clang::ASTContext& ast);
  virtual bool TraverseDecl(clang::Decl* node);
  virtual bool TraverseStmt(clang::Stmt* node);
#define ABSTRACT_DECL(Declaration)
#define DECL(Name, Base) virtual bool Traverse##Name##Decl(clang::Name##Decl* node);
#include <clang/AST/DeclNodes.inc>
#define ABSTRACT_STMT(Statement)
#define STMT(Name, Base) virtual bool Traverse##Name(clang::Name* node);
#include <clang/AST/StmtNodes.inc>

  virtual bool VisitDecl(clang::Decl*) { return true; }
  virtual bool VisitStmt(clang::Stmt*) { return true; }
#define DECL(Name, Base)                                                                           \
  virtual bool Visit##Name##Decl(clang::Name##Decl*) { return true; }
#include <clang/AST/DeclNodes.inc>
#define STMT(Name, Base)                                                                           \
  virtual bool Visit##Name(clang::Name*) { return true; }
#include <clang/AST/StmtNodes.inc>
#define ABSTRACT_TYPELOC(Name, Base)
#define TYPELOC(Name, Base) virtual bool Visit##Name##TypeLoc(clang::Name##TypeLoc node);
#include <clang/AST/TypeLocNodes.def>
};

} // namespace evo
