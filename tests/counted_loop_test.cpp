#include "mutators/analysis/counted_loop.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>
#include <gtest/gtest.h>

#include "tests/support/kernels.hpp"

namespace evo {
namespace {

/// The first loop of the last function of a file.
const clang::ForStmt& first_loop(const Kernel& kernel) {
  const clang::FunctionDecl* last = nullptr;
  for (const clang::Decl* decl : kernel.ast().getTranslationUnitDecl()->decls()) {
    if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(decl)) {
      last = function;
    }
  }
  for (const clang::Stmt* child : last->getBody()->children()) {
    if (const auto* loop = llvm::dyn_cast<clang::ForStmt>(child)) {
      return *loop;
    }
  }
  throw std::runtime_error("no loop");
}

/// "start, limit, step" as numbers, or "none".
std::string counts(const std::string& loop) {
  const Kernel kernel =
      test::parse("constexpr int tile = 8;\n__global__ void f(int *p, int n) {\n" + loop + "\n}\n");
  const auto counted = counted_loop(kernel, first_loop(kernel));
  if (!counted) {
    return "none";
  }
  const auto limit = constant_value(kernel, *counted->limit);
  return std::to_string(constant_value(kernel, *counted->start).value_or(-1)) + ", " +
         (limit ? std::to_string(*limit) : "n") + ", " + std::to_string(counted->step_value);
}

TEST(CountedLoop, ReadsEveryWayToCountUp) {
  EXPECT_EQ(counts("for (int i = 0; i < n; ++i) p[i] = i;"), "0, n, 1");
  EXPECT_EQ(counts("for (int i = 2; i < tile * 2; i++) p[i] = i;"), "2, 16, 1");
  EXPECT_EQ(counts("for (unsigned i = 0; i < 64; i += tile) { p[i] = i; }"), "0, 64, 8");
  EXPECT_EQ(counts("for (int i = threadIdx.x; i < n; i = i + tile) p[i] = i;"), "-1, n, 8");
}

TEST(CountedLoop, RefusesWhatItCannotCount) {
  EXPECT_EQ(counts("for (int i = n; i > 0; --i) p[i] = i;"), "none");
  EXPECT_EQ(counts("for (int i = 0; i != n; ++i) p[i] = i;"), "none");
  EXPECT_EQ(counts("for (int i = 0; i < n; i += n) p[i] = i;"), "none");
  EXPECT_EQ(counts("for (int i = 0; i < n; i += -1) p[i] = i;"), "none");
  EXPECT_EQ(counts("for (int i = 0; i < n; i *= 2) p[i] = i;"), "none");
  EXPECT_EQ(counts("for (int i = 0; i < n - i; ++i) p[i] = i;"), "none");
  EXPECT_EQ(counts("int i; for (i = 0; i < n; ++i) p[i] = i;"), "none");
}

TEST(CountedLoop, RefusesACounterThatTheBodyMayChange) {
  EXPECT_EQ(counts("for (int i = 0; i < n; ++i) { if (p[i]) i += 3; }"), "none");
  EXPECT_EQ(counts("for (int i = 0; i < n; ++i) { int &j = i; p[j++] = 1; }"), "none");
  EXPECT_EQ(counts("for (int i = 0; i < n; ++i) { int *j = &i; *j = 1; }"), "none");
}

} // namespace
} // namespace evo
