#include "mutators/analysis/stage_model.hpp"

#include <clang/AST/Decl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/kernels.hpp"
#include "tests/support/rename.hpp"
#include "tests/support/tile_variants.hpp"

namespace evo {
namespace {

using testing::Contains;
using testing::ElementsAre;

std::string name(Role role) {
  switch (role) {
  case Role::Core:
    return "core";
  case Role::Load:
    return "load";
  case Role::Store:
    return "store";
  case Role::Fragment:
    return "fragment";
  case Role::Barrier:
    return "barrier";
  case Role::Other:
    return "other";
  }
  return "";
}

std::string name(const Memory& memory) {
  static const char* const spaces[] = {"register", "shared", "global", "unknown"};
  return spaces[static_cast<int>(memory.space)];
}

std::vector<std::string> roles(const Stages& stages) {
  std::vector<std::string> names;
  for (const StagePart& part : stages.body) {
    names.push_back(name(part.role));
  }
  return names;
}

std::vector<std::string> moves(const Stages& stages) {
  std::vector<std::string> names;
  for (const Move& move : stages.moves) {
    names.push_back(name(move.from) + " to " + name(move.to));
  }
  return names;
}

/// A kernel with the loop's body given, and Stages of it.
struct Model {
  explicit Model(const std::string& body, const std::string& before = "")
      : kernel(test::parse("struct Tiles { float a[8][8]; float b[8][8]; };\n" + before +
                           "__global__ void f(const float *A, const float *B, float *C, int n) {\n"
                           "  extern __shared__ float memory[];\n"
                           "  Tiles &tiles = *reinterpret_cast<Tiles *>(memory);\n"
                           "  const int x = threadIdx.x % 8, y = threadIdx.x / 8;\n"
                           "  float sum = 0.0f;\n"
                           "  for (int k0 = 0; k0 < n; k0 += 8) {\n" +
                           body + "  }\n  C[threadIdx.x] = sum;\n}\n")),
        found(find_stages(kernel)) {}

  Kernel kernel;
  std::vector<Stages> found;
};

TEST(StageModel, SeesTheTiledSeed) {
  const Kernel kernel = test::parse(test::read(test::in_repository("seeds/lora/tiled.cu")));
  const auto found = find_stages(kernel);
  ASSERT_EQ(found.size(), 3u); // project, gemm, update
  const Stages& gemm = found[1];
  EXPECT_EQ(gemm.kernel->getNameAsString(), "gemm");
  EXPECT_THAT(roles(gemm), ElementsAre("load", "load", "barrier", "core", "barrier"));
  EXPECT_THAT(moves(gemm), ElementsAre("global to shared", "global to shared"));
  ASSERT_EQ(gemm.tiles.size(), 2u);
  EXPECT_EQ(gemm.tiles[0].member->getNameAsString(), "w");
  EXPECT_EQ(gemm.tiles[1].member->getNameAsString(), "x");
  ASSERT_EQ(gemm.accumulators.size(), 1u);
  EXPECT_EQ(gemm.accumulators[0]->getNameAsString(), "sum");
  EXPECT_EQ(gemm.epilogue.size(), 1u);
  EXPECT_FALSE(gemm.inside_loop);
}

TEST(StageModel, SeesTheNaiveSeedAsAllCore) {
  const Kernel kernel = test::parse(test::read(test::in_repository("seeds/lora/naive.cu")));
  const auto found = find_stages(kernel);
  ASSERT_EQ(found.size(), 3u);
  for (const Stages& stages : found) {
    EXPECT_THAT(roles(stages), ElementsAre("core"));
    EXPECT_TRUE(stages.tiles.empty());
    EXPECT_EQ(stages.epilogue.size(), 1u);
  }
}

TEST(StageModel, DependsNeitherOnNamesNorOnConstants) {
  const std::string source = test::read(test::in_repository("seeds/lora/tiled.cu"));
  auto variants = test::tile_variants(source);
  variants.push_back({"names", test::rename(source).source});
  EXPECT_GT(variants.size(), 4u);
  for (const auto& variant : variants) {
    SCOPED_TRACE(variant.change);
    const Kernel kernel = test::parse(variant.source);
    const auto found = find_stages(kernel);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_THAT(roles(found[1]), ElementsAre("load", "load", "barrier", "core", "barrier"));
  }
}

TEST(StageModel, FollowsDataThroughRegisters) {
  const Model model("    float next = A[k0 + threadIdx.x];\n"
                    "    float fragment = tiles.b[y][x];\n"
                    "    sum += fragment * tiles.a[x][y];\n"
                    "    tiles.a[y][x] = next;\n"
                    "    __syncthreads();\n");
  ASSERT_EQ(model.found.size(), 1u);
  EXPECT_THAT(roles(model.found[0]), ElementsAre("load", "fragment", "core", "store", "barrier"));
  EXPECT_THAT(moves(model.found[0]),
              ElementsAre("global to register", "shared to register", "register to shared"));
}

TEST(StageModel, LooksIntoFunctionsPragmasAndBraces) {
  const Model model("    {\n      load(tiles.a, A + k0);\n    }\n"
                    "    if (y < 8) tiles.b[y][x] = __ldg(B + k0);\n"
                    "    __syncthreads();\n"
                    "#pragma unroll 2\n"
                    "    for (int k = 0; k < 8; ++k) multiply(tiles, sum, k);\n"
                    "    __syncthreads();\n",
                    "__device__ void load(float (*tile)[8], const float *from) {\n"
                    "  const int i = threadIdx.x;\n"
                    "  tile[i / 8][i % 8] = from[i];\n}\n"
                    "__device__ void multiply(const Tiles &tiles, float &sum, int k) {\n"
                    "  sum = fmaf(tiles.a[k][0], tiles.b[0][k], sum);\n}\n");
  ASSERT_EQ(model.found.size(), 1u);
  EXPECT_THAT(roles(model.found[0]), ElementsAre("load", "load", "barrier", "core", "barrier"));
  EXPECT_THAT(moves(model.found[0]), ElementsAre("global to shared", "global to shared"));
}

TEST(StageModel, FollowsPointersAndVectors) {
  const Model model("    const float *from = A + k0;\n"
                    "    const float4 four = *reinterpret_cast<const float4 *>(&from[4 * x]);\n"
                    "    *reinterpret_cast<float4 *>(&tiles.a[y][0]) = four;\n"
                    "    __syncthreads();\n"
                    "    sum += tiles.a[x][y];\n"
                    "    __syncthreads();\n");
  ASSERT_EQ(model.found.size(), 1u);
  EXPECT_THAT(roles(model.found[0]),
              ElementsAre("other", "load", "store", "barrier", "core", "barrier"));
  EXPECT_EQ(model.found[0].tiles.size(), 1u);
}

TEST(StageModel, SeesTensorCores) {
  const Kernel kernel =
      test::parse(test::read(test::in_repository("tests/tensor_core/product.cu")));
  const auto found = find_stages(kernel);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(roles(found[0]), ElementsAre("load", "load", "barrier", "core", "barrier"));
  ASSERT_EQ(found[0].tiles.size(), 4u);
  EXPECT_EQ(found[0].tiles[0].member->getNameAsString(), "a_high");
  ASSERT_EQ(found[0].accumulators.size(), 1u);
  EXPECT_EQ(found[0].accumulators[0]->getNameAsString(), "sum");
  EXPECT_EQ(found[0].body[3].accesses.opaque, nullptr);
  EXPECT_THAT(moves(found[0]), Contains("shared to register"));
}

TEST(StageModel, SaysWhatItDoesNotKnow) {
  const Model model("    const float *from = A;\n"
                    "    if (x < 3) from = B;\n"
                    "    sum += from[k0];\n"
                    "    asm volatile(\"bar.sync 0;\");\n");
  ASSERT_EQ(model.found.size(), 1u);
  const auto& body = model.found[0].body;
  ASSERT_EQ(body.size(), 4u);
  EXPECT_TRUE(std::ranges::any_of(body[2].accesses.list, [](const MemoryAccess& access) {
    return access.reads && access.memory.space == Space::Unknown;
  }));
  EXPECT_EQ(body[2].accesses.opaque, nullptr);
  EXPECT_NE(body[3].accesses.opaque, nullptr);
}

TEST(StageModel, TellsALoopThatRunsSeveralTimes) {
  const Kernel kernel = test::parse("__global__ void f(const float *A, float *C, int n) {\n"
                                    "  for (int row = 0; row < n; ++row) {\n"
                                    "    float sum = 0.0f;\n"
                                    "    for (int k = 0; k < n; ++k) { sum += A[k]; }\n"
                                    "    C[row] = sum;\n  }\n}\n");
  const auto found = find_stages(kernel);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].inside_loop);
  EXPECT_EQ(found[0].epilogue.size(), 1u);
}

TEST(StageModel, FindsNothingWhereNothingAccumulates) {
  const Kernel kernel = test::parse("__global__ void f(const float *A, float *C, int n) {\n"
                                    "  for (int i = threadIdx.x; i < n; i += 256) C[i] = A[i];\n}\n"
                                    "float host(const float *A, int n) {\n  float sum = 0.0f;\n"
                                    "  for (int i = 0; i < n; ++i) sum += A[i];\n"
                                    "  return sum;\n}\n");
  EXPECT_TRUE(find_stages(kernel).empty());
}

} // namespace
} // namespace evo
