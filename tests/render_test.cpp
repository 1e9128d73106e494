#include "mutators/render.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace evo {
namespace {

Kernel parse(std::string source) {
  return std::get<Kernel>(Kernel::parse(std::move(source), *Target::find("sm_86")));
}

/// The statements of the last function.
std::vector<const clang::Stmt*> body(const Kernel& kernel) {
  const clang::FunctionDecl* last = nullptr;
  for (const clang::Decl* decl : kernel.ast().getTranslationUnitDecl()->decls()) {
    if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(decl)) {
      last = function;
    }
  }
  const auto children = last->getBody()->children();
  return {children.begin(), children.end()};
}

std::string text(const Kernel& kernel, const clang::Stmt* statement) {
  const auto span = span_of(kernel, *statement);
  return span ? render(kernel, *span) : "none";
}

TEST(Render, IncludesTheSemicolonOfAStatement) {
  const Kernel kernel = parse("__global__ void f(float *p) {\n"
                              "  p[0] = 1.0f ;\n"
                              "  int i = 0;\n"
                              "  for (; i < 3; ++i)\n    if (i == 1)\n      p[i] = 2.0f;\n"
                              "  { p[4] = 1.0f; }\n}\n");
  const auto statements = body(kernel);
  EXPECT_EQ(text(kernel, statements[0]), "p[0] = 1.0f ;");
  EXPECT_EQ(text(kernel, statements[1]), "int i = 0;");
  EXPECT_EQ(text(kernel, statements[2]), "for (; i < 3; ++i)\n    if (i == 1)\n      p[i] = 2.0f;");
  EXPECT_EQ(text(kernel, statements[3]), "{ p[4] = 1.0f; }");
}

TEST(Render, AppliesTheEditsInside) {
  const Kernel kernel = parse("__global__ void f(float *p) { p[0] = 1.0f; p[1] = 2.0f; }\n");
  const auto span = *span_of(kernel, *body(kernel)[1]);
  EXPECT_EQ(render(kernel, span, {{span.begin, 0, "x"}, {span.begin + 2, 1, "7"}, {0, 3, "no"}}),
            "xp[7] = 2.0f;");
}

TEST(Render, RefusesWhatAMacroWrote) {
  const Kernel kernel = parse("#define STORE p[0] = 1.0f\n"
                              "__global__ void f(float *p) { STORE; p[1] = 2.0f; }\n");
  EXPECT_EQ(text(kernel, body(kernel)[0]), "none");
  EXPECT_EQ(text(kernel, body(kernel)[1]), "p[1] = 2.0f;");
}

TEST(Render, PutsParenthesesWhereAnOperandNeedsThem) {
  const Kernel kernel = parse("__global__ void f(int a, int b) { a + b; a *b; a ? a : b; a; }\n");
  std::string text;
  for (const clang::Stmt* statement : body(kernel)) {
    for (const Binding binding : {Binding::Sum, Binding::Product, Binding::Operand}) {
      text += *operand(kernel, *llvm::dyn_cast<clang::Expr>(statement), binding) + ", ";
    }
  }
  EXPECT_EQ(text, "a + b, (a + b), (a + b), a *b, a *b, (a *b), "
                  "(a ? a : b), (a ? a : b), (a ? a : b), a, a, a, ");
}

TEST(Render, FindsThePlaceBeforeADeclarationAndItsComment) {
  const Kernel kernel = parse("int a;\n// About f.\n// More.\n__global__ void\nf() {}\n\n"
                              "// Not about g.\n\nextern \"C\" void g() {}\n");
  std::vector<std::string> lines;
  for (const clang::Decl* decl : kernel.ast().getTranslationUnitDecl()->decls()) {
    if (const auto* linkage = llvm::dyn_cast<clang::LinkageSpecDecl>(decl)) {
      decl = *linkage->decls_begin();
    }
    const auto* function = llvm::dyn_cast<clang::FunctionDecl>(decl);
    if (function != nullptr && function->hasBody()) {
      const unsigned offset = offset_before(kernel, *decl).value_or(0);
      lines.push_back(kernel.source().substr(offset, kernel.source().find('\n', offset) - offset));
    }
  }
  EXPECT_THAT(lines, testing::ElementsAre("// About f.", "extern \"C\" void g() {}"));
}

TEST(Render, FindsTheBeginOfALine) {
  const Kernel kernel = parse("int a;\nint b;\n");
  EXPECT_EQ(line_begin(kernel, 0), 0u);
  EXPECT_EQ(line_begin(kernel, 6), 0u);
  EXPECT_EQ(line_begin(kernel, 7), 7u);
  EXPECT_EQ(line_begin(kernel, 9), 7u);
}

} // namespace
} // namespace evo
