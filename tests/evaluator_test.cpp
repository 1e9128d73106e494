#include "mutators/analysis/evaluator.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/ExprCXX.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/leaf_helpers.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

template <class T> const T* find(const Kernel& kernel, const std::string& name) {
  struct Visitor : SyntaxVisitor {
    bool VisitNamedDecl(clang::NamedDecl* declaration) override {
      const auto* match = clang::dyn_cast<T>(declaration);
      if (match != nullptr && match->getNameAsString() == name) {
        found = match;
      }
      return true;
    }
    std::string name;
    const T* found = nullptr;
  } visitor;
  visitor.name = name;
  visitor.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  return visitor.found;
}

std::string describe(const std::variant<std::int64_t, Failure>& result) {
  const auto* value = std::get_if<std::int64_t>(&result);
  return value != nullptr ? std::to_string(*value) : std::get<Failure>(result).reason;
}

/// "tiles.w r0 r1 ...": what each thread accesses, thread by thread in every access, and barriers.
class Recorder : public AccessObserver {
public:
  explicit Recorder(const Evaluator& evaluator) : evaluator_(evaluator) {}

  void access(const Access& access) override {
    const Array& array = evaluator_.arrays()[access.array];
    std::string line = array.name + (access.write ? " w" : " r");
    for (std::size_t lane = 0; lane < access.active->size(); ++lane) {
      line += ' ';
      line += (*access.active)[lane] ? std::to_string((*access.elements)[lane]) : ".";
    }
    lines.push_back(line);
  }
  void barrier() override { lines.push_back("barrier"); }

  std::vector<std::string> lines;

private:
  const Evaluator& evaluator_;
};

struct Outcome {
  std::vector<std::string> lines;
  std::string failure;
};

Outcome trace(const std::string& source, int threads, std::vector<Argument> arguments,
              std::int64_t dynamic_shared_bytes = 0, int block = 0) {
  const Kernel kernel = parse(source);
  Evaluator evaluator(kernel);
  Recorder recorder(evaluator);
  const auto failure = evaluator.run({.kernel = find<clang::FunctionDecl>(kernel, "f"),
                                      .grid = {8, 1, 1},
                                      .block = {threads, 1, 1},
                                      .index = {block, 0, 0},
                                      .arguments = std::move(arguments),
                                      .dynamic_shared_bytes = dynamic_shared_bytes},
                                     recorder);
  return {recorder.lines, failure ? failure->reason : ""};
}

std::string value_of(const std::string& source, const Assignment& values = {}) {
  const Kernel kernel = parse(source);
  return describe(Evaluator(kernel, values).value(*find<clang::VarDecl>(kernel, "x")->getInit()));
}

TEST(EvaluatorValue, ComputesConstantsThroughFunctions) {
  EXPECT_EQ(value_of("constexpr int a = 7;\n"
                     "constexpr int ceil_div(int n, int by) { return (n + by - 1) / by; }\n"
                     "constexpr int log2(int n) { return n <= 1 ? 0 : 1 + log2(n / 2); }\n"
                     "constexpr int x = ceil_div(a * 3, 4) + log2(64) + (a & 3) + (1 << 4);"),
            "31");
}

TEST(EvaluatorValue, FollowsAChangedConstantIntoExtentsAndSizes) {
  const Kernel kernel = parse("constexpr int m = 4;\nconstexpr int n = m * 2;\n"
                              "using Row = float[n];\n"
                              "struct Tiles { char flag; Row a[m]; float4 v; };\n"
                              "constexpr int x = sizeof(Tiles) + alignof(Tiles);\n");
  const auto& x = *find<clang::VarDecl>(kernel, "x")->getInit();
  EXPECT_EQ(describe(Evaluator(kernel).value(x)), std::to_string(16 * (1 + 8 + 1) + 16));
  const Assignment half{{find<clang::VarDecl>(kernel, "m"), 2}};
  EXPECT_EQ(describe(Evaluator(kernel, half).value(x)), std::to_string(16 * (1 + 2 + 1) + 16 + 0));
}

TEST(EvaluatorValue, FollowsAChangedConstantIntoTheSizeOfAMembersRow) {
  const Kernel kernel = parse("constexpr int n = 8;\n"
                              "struct Tiles { float w[2][n][n + 1]; };\n"
                              "constexpr int x = sizeof(Tiles::w[0]) + sizeof(Tiles::w[0][0]);\n");
  const auto& x = *find<clang::VarDecl>(kernel, "x")->getInit();
  const Assignment half{{find<clang::VarDecl>(kernel, "n"), 4}};
  EXPECT_EQ(describe(Evaluator(kernel, half).value(x)), std::to_string(4 * 4 * 5 + 4 * 5));
}

TEST(EvaluatorValue, AgreesWithTheCompilerOnTheSeeds) {
  const Kernel kernel = parse(read(in_repository("seeds/lora/tiled.cu")));
  const auto* tiles = find<clang::CXXRecordDecl>(kernel, "GemmTiles");
  EXPECT_EQ(describe(Evaluator(kernel).size_of(**tiles->field_begin())),
            std::to_string(64 * 8 * 4));
  EXPECT_EQ(
      describe(Evaluator(kernel).value(*find<clang::VarDecl>(kernel, "gemm_threads")->getInit())),
      "256");
}

TEST(EvaluatorValue, RefusesWhatItCannotKnow) {
  EXPECT_THAT(value_of("extern int y;\nint x = y;"), HasSubstr("2:9: the variable y"));
  EXPECT_THAT(value_of("constexpr int zero = 0;\nint x = 3 / zero;"),
              HasSubstr("division by zero"));
  EXPECT_THAT(value_of("constexpr int big = 2000000000;\nint x = big + big;"),
              HasSubstr("overflows"));
  EXPECT_THAT(value_of("int x = 1.5f;"), HasSubstr("a float decides"));
  EXPECT_THAT(value_of("constexpr int f(int n) { while (n > 0) {} return 0; }\nint x = f(1);"),
              HasSubstr("too many steps"));
}

TEST(EvaluatorValue, RefusesTemplateArgumentsThatDoNotFollowAChange) {
  const Kernel kernel = parse("constexpr int m = 4;\n"
                              "template <int n> constexpr int twice() { return 2 * n; }\n"
                              "constexpr int x = twice<m>();\n");
  const auto& x = *find<clang::VarDecl>(kernel, "x")->getInit();
  EXPECT_EQ(describe(Evaluator(kernel).value(x)), "8");
  EXPECT_THAT(describe(Evaluator(kernel, {{find<clang::VarDecl>(kernel, "m"), 8}}).value(x)),
              HasSubstr("template argument"));
}

TEST(EvaluatorValue, EvaluatesAnIndexForEveryThreadOfABlock) {
  const Kernel kernel = parse("__global__ void f(int d) {\n"
                              "  const int row = blockIdx.x * 2 + threadIdx.x / 3;\n"
                              "  const int x = row * d + threadIdx.x % 3;\n}\n");
  const auto result = Evaluator(kernel).value(*find<clang::VarDecl>(kernel, "x")->getInit(),
                                              {.kernel = find<clang::FunctionDecl>(kernel, "f"),
                                               .grid = {},
                                               .block = {6, 1, 1},
                                               .index = {1, 0, 0},
                                               .arguments = {std::int64_t{10}}});
  ASSERT_TRUE(std::holds_alternative<Ints>(result));
  EXPECT_EQ(std::get<Ints>(result), Ints({20, 21, 22, 30, 31, 32}));
}

TEST(EvaluatorRun, RecordsEveryThreadsAccesses) {
  const auto result = trace("__global__ void f(const float* a, float* b, int d) {\n"
                            "  const int i = blockIdx.x * 4 + threadIdx.x;\n"
                            "  if (i < d && i != 5) b[i] = 2.0f * a[d - 1 - i];\n}\n",
                            4, {Buffer{0, 0}, Buffer{1, 0}, std::int64_t{7}}, 0, 1);
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(result.lines, ElementsAre("a r 2 . 0 .", "b w 4 . 6 ."));
}

TEST(EvaluatorRun, FollowsDivergentLoopsBreakContinueAndReturn) {
  const auto result = trace("__global__ void f(float* a) {\n"
                            "  const int t = threadIdx.x;\n"
                            "  if (t == 3) return;\n"
                            "  int n = 0;\n"
                            "  for (int i = t; i < 6; i += 2) {\n"
                            "    if (i == 2) continue;\n"
                            "    if (i == 5) break;\n"
                            "    n += i;\n"
                            "  }\n"
                            "  a[n] = 0.0f;\n}\n",
                            4, {Buffer{0, 0}});
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(result.lines, ElementsAre("a w 4 4 4 ."));
}

TEST(EvaluatorRun, SeesAStructInDynamicSharedMemoryByItsMembers) {
  const auto result = trace("struct Tiles { float w[2][3]; float x[3]; };\n"
                            "__device__ float& at(Tiles& tiles, int i) { return tiles.x[i]; }\n"
                            "__global__ void f() {\n"
                            "  extern __shared__ float memory[];\n"
                            "  Tiles& tiles = *reinterpret_cast<Tiles*>(memory);\n"
                            "  tiles.w[threadIdx.x][1] = 0.0f;\n"
                            "  __syncthreads();\n"
                            "  at(tiles, 2) = tiles.w[1][2];\n}\n",
                            2, {}, 36);
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(result.lines,
              ElementsAre("memory.w w 1 4", "barrier", "memory.w r 5 5", "memory.x w 2 2"));
}

TEST(EvaluatorRun, SeesStagesOfAStruct) {
  const auto result = trace("struct Stage { float w[4]; float x[2]; };\n"
                            "struct Shared { Stage stage[2]; };\n"
                            "__global__ void f() {\n"
                            "  __shared__ Shared shared;\n"
                            "  shared.stage[threadIdx.x].x[1] = 0.0f;\n}\n",
                            2, {});
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(result.lines, ElementsAre("shared.stage.x w 1 3"));
}

TEST(EvaluatorRun, CountsTheElementsOfAVectorAccessByPlace) {
  const auto result =
      trace("__global__ void f(const float* a) {\n"
            "  float local[8];\n"
            "  const float4 v = *reinterpret_cast<const float4*>(&a[4 * threadIdx.x]);\n"
            "  *reinterpret_cast<float4*>(&local[4]) = v;\n"
            "  local[0] = v.y;\n}\n",
            2, {Buffer{0, 16}});
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(result.lines, ElementsAre("a r 4 8", "local w 4 4", "local w 0 0"));
}

TEST(EvaluatorRun, ReportsWhatLiesOutsideAnArray) {
  EXPECT_THAT(trace("__global__ void f() {\n  __shared__ float s[4][8];\n"
                    "  s[0][threadIdx.x] = 0.0f;\n}\n",
                    9, {})
                  .failure,
              HasSubstr("3:3: an index lies outside the 8 elements of s"));
  EXPECT_THAT(trace("__global__ void f() {\n  float s[4];\n  float* p = s;\n"
                    "  p[threadIdx.x - 1] = 0.0f;\n}\n",
                    1, {})
                  .failure,
              HasSubstr("lies outside s"));
  EXPECT_THAT(trace("struct T { float a[4]; };\n__global__ void f() {\n"
                    "  extern __shared__ float s[];\n"
                    "  reinterpret_cast<T*>(s)->a[0] = 0.0f;\n}\n",
                    1, {}, 12)
                  .failure,
              HasSubstr("smaller than the struct"));
}

TEST(EvaluatorRun, ReportsAMisalignedVectorAccess) {
  EXPECT_THAT(
      trace("__global__ void f(const float* a, int d) {\n"
            "  const float4 v = *reinterpret_cast<const float4*>(&a[threadIdx.x * d]);\n}\n",
            2, {Buffer{0, 0}, std::int64_t{3}})
          .failure,
      HasSubstr("misaligned"));
}

TEST(EvaluatorRun, KnowsWhichAddressesAreAligned) {
  const std::string wide =
      "__global__ void f(const float* a, int d) {\n"
      "  if (reinterpret_cast<size_t>(&a[threadIdx.x * d]) % sizeof(float4) == 0) {\n"
      "    const float4 v = *reinterpret_cast<const float4*>(&a[threadIdx.x * d]);\n  }\n}\n";
  const auto result = trace(wide, 5, {Buffer{0, 0}, std::int64_t{3}});
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(result.lines, ElementsAre("a r 0 . . . 12"));
  EXPECT_THAT(trace("__global__ void f(const float* a, float* b) {\n"
                    "  if (reinterpret_cast<size_t>(a) % 4096 == 0) b[0] = 0.0f;\n}\n",
                    1, {Buffer{0, 0}, Buffer{1, 0}})
                  .failure,
              HasSubstr("an address decides here"));
}

TEST(EvaluatorRun, ReportsABarrierThatSomeThreadsMiss) {
  EXPECT_THAT(
      trace("__global__ void f() {\n  if (threadIdx.x < 1) __syncthreads();\n}\n", 2, {}).failure,
      HasSubstr("2:24: a barrier"));
  EXPECT_THAT(
      trace("__global__ void f() {\n  if (threadIdx.x < 1) return;\n  __syncthreads();\n}\n", 2, {})
          .failure,
      HasSubstr("a barrier"));
}

TEST(EvaluatorRun, SeesTheRowsThatLdmatrixReads) {
  const auto traced = [](const std::string& index, int threads = 32) {
    return trace("#include <cuda_fp16.h>\n#include <cuda_runtime.h>\n" +
                     std::string(leaf_helper_text("ldmatrix_x1")) +
                     "__global__ void f() {\n  __shared__ __half tile[8][24];\n"
                     "  unsigned fragment[1];\n  ldmatrix_x1(fragment, &tile[threadIdx.x % 8][" +
                     index + "]);\n}\n",
                 threads, {});
  };
  const Outcome outcome = traced("8");
  EXPECT_EQ(outcome.failure, "");
  // Lanes 0 to 7 name the rows; every lane gets a register.
  ASSERT_EQ(outcome.lines.size(), 2u);
  EXPECT_THAT(outcome.lines[0], StartsWith("tile r 8 32 56 80 104 128 152 176 . . ."));
  EXPECT_THAT(outcome.lines[1], StartsWith("fragment w 0 0 0"));
  EXPECT_THAT(traced("4").failure, HasSubstr("a misaligned access to tile"));
  EXPECT_THAT(traced("24").failure, HasSubstr("outside"));
  EXPECT_THAT(traced("8", 24).failure, HasSubstr("not all lanes of a warp reach"));
}

TEST(EvaluatorRun, RefusesWhatItCannotFollow) {
  EXPECT_THAT(trace("__global__ void f(const int* a, float* b) { b[a[0]] = 0.0f; }\n", 1,
                    {Buffer{0, 0}, Buffer{1, 0}})
                  .failure,
              HasSubstr("an integer read from memory"));
  EXPECT_THAT(
      trace("__global__ void f(float* a) { if (a[0] > 0.0f) a[1] = 0.0f; }\n", 1, {Buffer{0, 0}})
          .failure,
      HasSubstr("a float decides"));
  EXPECT_THAT(trace("__global__ void f() { asm volatile(\"membar.gl;\"); }\n", 1, {}).failure,
              HasSubstr("inline assembly is not followed"));
  EXPECT_THAT(
      trace("__global__ void f(float* a) { atomicAdd(a, 1.0f); }\n", 1, {Buffer{0, 0}}).failure,
      HasSubstr("atomicAdd"));
}

TEST(EvaluatorRun, TakesEitherOfTwoOpaqueValues) {
  EXPECT_EQ(
      trace("__global__ void f(float* a) { const float v = a[0]; a[1] = v > 0.0f ? v : 0.0f; }\n",
            1, {Buffer{0, 0}})
          .failure,
      "");
}

/// Stands for every segment that repeats, and counts.
class Repeater : public AccessObserver {
public:
  void access(const Access&) override { ++accesses; }
  bool repeat(int) override { return ++repeats, true; }
  int accesses = 0;
  int repeats = 0;
};

TEST(EvaluatorRun, OffersWhatRepeats) {
  const Kernel kernel = parse("__global__ void f(int d) {\n"
                              "  __shared__ float s[4];\n  float sum = 0.0f;\n"
                              "  for (int k0 = 0; k0 < d; ++k0) {\n"
                              "    s[k0 % 4] = 1.0f;\n"
                              "    __syncthreads();\n"
                              "    for (int k = 0; k < 4; ++k) { sum += s[k]; }\n"
                              "    __syncthreads();\n  }\n}\n");
  Evaluator evaluator(kernel);
  Repeater repeater;
  const auto failure = evaluator.run({.kernel = find<clang::FunctionDecl>(kernel, "f"),
                                      .grid = {},
                                      .block = {32, 1, 1},
                                      .index = {},
                                      .arguments = {std::int64_t{5}}},
                                     repeater);
  EXPECT_FALSE(failure) << failure->reason;
  EXPECT_EQ(repeater.repeats, 4);
  EXPECT_EQ(repeater.accesses, 5 + 4);
}

} // namespace
} // namespace evo::test
