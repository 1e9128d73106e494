// A mutator derives every kernel from its parent: none may hold the body of one as text.
#include <algorithm>
#include <string>
#include <vector>

#include <clang/Basic/LangOptions.h>
#include <clang/Lex/Lexer.h>
#include <gtest/gtest.h>

#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

/// Neighbouring string literals joined, as the compiler joins them.
std::vector<std::string> string_literals(const std::string& source) {
  clang::LangOptions options;
  options.CPlusPlus = options.CPlusPlus11 = true; // raw strings
  const char* begin = source.c_str();
  clang::Lexer lexer(clang::SourceLocation(), options, begin, begin, begin + source.size());
  std::vector<std::string> result(1);
  clang::Token token;
  for (bool last = false; !last;) {
    last = lexer.LexFromRawLexer(token);
    if (clang::tok::isStringLiteral(token.getKind())) {
      const std::size_t end = static_cast<std::size_t>(lexer.getBufferLocation() - begin);
      result.back() += source.substr(end - token.getLength(), token.getLength());
    } else if (!result.back().empty()) {
      result.emplace_back();
    }
  }
  return result;
}

bool holds_a_kernel(const std::string& source) {
  return std::ranges::any_of(string_literals(source), [](const std::string& literal) {
    const std::size_t kernel = literal.find("__global__");
    return kernel != std::string::npos && literal.find('{', kernel) != std::string::npos;
  });
}

TEST(NoStaticKernels, TheCheckItselfSeesOne) {
  EXPECT_TRUE(holds_a_kernel(R"(auto a = "__global__ void f() " "{ }";)"));
  EXPECT_TRUE(holds_a_kernel("auto a = R\"(__global__ void f()\n{ })\";"));
  EXPECT_FALSE(holds_a_kernel(R"(auto a = "__global__"; auto b = "{";)"));
  EXPECT_FALSE(holds_a_kernel("// __global__ void f() { }"));
}

/// The pass that splits an operand before the launch, into parts of a short type or into slices of
/// int8, is the one kernel that a rewrite brings along: it makes what tensor cores read of a
/// matrix, and takes all names, sizes and types from the parent.
const std::set<std::filesystem::path> splitting_passes{"scale_texts.hpp", "split_texts.hpp"};

TEST(NoStaticKernels, TheSplittingPassIsTheOneException) {
  for (const auto& file : splitting_passes) {
    const std::string source = read(in_repository("mutators") / file);
    const std::size_t kernel = source.find("__global__");
    EXPECT_TRUE(source.substr(kernel).starts_with("__global__ void $split("));
    EXPECT_EQ(source.find("__global__", kernel + 1), std::string::npos);
  }
}

TEST(NoStaticKernels, InAnyMutator) {
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(in_repository("mutators"))) {
    const auto extension = entry.path().extension();
    if ((extension == ".cpp" || extension == ".hpp") &&
        !splitting_passes.contains(entry.path().filename())) {
      EXPECT_FALSE(holds_a_kernel(read(entry.path()))) << entry.path();
    }
  }
}

} // namespace
} // namespace evo::test
