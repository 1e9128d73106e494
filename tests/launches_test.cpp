#include "mutators/analysis/launches.hpp"

#include <algorithm>
#include <stdexcept>

#include <clang/AST/Decl.h>
#include <gtest/gtest.h>

#include "mutators/analysis/constants.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

std::vector<std::string> kernel_names(const std::vector<Launch>& launches) {
  std::vector<std::string> names;
  for (const Launch& launch : launches) {
    names.push_back(launch.kernel->getNameAsString());
  }
  return names;
}

TEST(FindLaunches, ListsTheSeedsLaunchesInOrder) {
  const Kernel tiled = parse(read(in_repository("seeds/lora/tiled.cu")));
  const auto launches = find_launches(tiled);
  EXPECT_EQ(kernel_names(launches), (std::vector<std::string>{"project", "gemm", "update"}));
  EXPECT_EQ(launches[1].arguments.size(), 4u);
  EXPECT_NE(launches[1].shared_bytes, nullptr);
  EXPECT_EQ(find_entry(tiled)->getNameAsString(), "lora");
}

TEST(FindLaunches, LeavesOutWhatTheLaunchLeavesOut) {
  const Kernel kernel = parse("__global__ void f(int d) {}\n"
                              "extern \"C\" void run(int d) { f<<<d, 32>>>(d); }\n");
  const auto launches = find_launches(kernel);
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].shared_bytes, nullptr);
  EXPECT_EQ(launches[0].stream, nullptr);
}

TEST(FindLaunches, RefusesTwoEntriesAndKernelsWithoutABody) {
  const Kernel two = parse("__global__ void f() {}\n"
                           "extern \"C\" void a() { f<<<1, 1>>>(); }\n"
                           "extern \"C\" void b() { f<<<1, 1>>>(); }\n");
  EXPECT_EQ(find_entry(two), nullptr);
  EXPECT_TRUE(find_launches(two).empty());
  const Kernel bodiless = parse("__global__ void f();\n"
                                "extern \"C\" void a() { f<<<1, 1>>>(); }\n");
  EXPECT_TRUE(find_launches(bodiless).empty());
}

std::vector<EvaluatedLaunch> evaluated(const Kernel& kernel, std::vector<std::int64_t> dims,
                                       const Assignment& values = {}) {
  auto result = evaluate_launches(kernel, dims, values);
  if (const auto* failure = std::get_if<Failure>(&result)) {
    throw std::runtime_error(failure->reason);
  }
  return std::get<std::vector<EvaluatedLaunch>>(std::move(result));
}

const clang::VarDecl* constant(const Kernel& kernel, const std::string& name) {
  const auto constants = find_constants(kernel);
  return std::ranges::find(constants, name, &Constant::name)->declaration;
}

TEST(EvaluateLaunches, ComputesTheSeedsConfigurations) {
  const Kernel kernel = parse(read(in_repository("seeds/lora/tiled.cu")));
  const auto launches = evaluated(kernel, {131, 16});
  ASSERT_EQ(launches.size(), 3u);
  EXPECT_EQ(launches[0].grid, (Extent3{1, 16, 1}));
  EXPECT_EQ(launches[1].grid, (Extent3{3, 3, 1}));
  EXPECT_EQ(launches[1].block, (Extent3{256, 1, 1}));
  EXPECT_EQ(launches[1].shared_bytes, (64 * 8 + 8 * 64) * 4);
  EXPECT_EQ(launches[2].grid, (Extent3{1, 131, 1}));
  EXPECT_EQ(launches[0].arguments[2], Argument(Buffer{7, 0})) << "T stands in the workspace";
  EXPECT_EQ(launches[2].arguments[2], Argument(Buffer{4, 0})) << "Y";
  EXPECT_EQ(launches[2].arguments[3], Argument(std::int64_t{131}));
}

TEST(EvaluateLaunches, FollowsAChangedConstant) {
  const Kernel kernel = parse(read(in_repository("seeds/lora/tiled.cu")));
  const auto launches =
      evaluated(kernel, {131, 16},
                {{constant(kernel, "gemm_block_m"), 128}, {constant(kernel, "gemm_thread_m"), 8}});
  EXPECT_EQ(launches[1].grid, (Extent3{3, 2, 1}));
  EXPECT_EQ(launches[1].block, (Extent3{256, 1, 1}));
  EXPECT_EQ(launches[1].shared_bytes, (128 * 8 + 8 * 64) * 4);
  EXPECT_TRUE(evaluated(kernel, {131, 16}, {{constant(kernel, "rank"), 32}}).empty());
}

TEST(EvaluateLaunches, FollowsVariablesBranchesRegionsAndLimits) {
  const Kernel kernel = parse(
      "constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }\n"
      "__global__ void f(float* a, int n, float scale) {}\n"
      "extern \"C\" cudaError_t run(float* y, int d, void* workspace, cudaStream_t stream) {\n"
      "  float* first = static_cast<float*>(workspace);\n"
      "  float* second = first + 2 * d;\n"
      "  const dim3 grid(ceil_div(d, 8), 2);\n"
      "  if (cudaError_t error = cudaFuncSetAttribute(\n"
      "          f, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000)) return error;\n"
      "  for (int pass = 0; pass < 2; ++pass) f<<<grid, 32, 60000, stream>>>(second, pass, 1.0f);\n"
      "  if (d > 100) f<<<1, 1>>>(y, d, 1.0f);\n"
      "  return cudaGetLastError();\n}\n");
  const auto launches = evaluated(kernel, {20});
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[1].grid, (Extent3{3, 2, 1}));
  EXPECT_EQ(launches[1].shared_limit, 60000);
  EXPECT_EQ(launches[1].arguments,
            (std::vector<Argument>{Buffer{2, 160}, std::int64_t{1}, std::monostate{}}));
  EXPECT_EQ(evaluated(kernel, {101}).size(), 3u);
}

TEST(EvaluateLaunches, RefusesAGridThatIsNotKnown) {
  const Kernel kernel = parse("int device_count();\n__global__ void f() {}\n"
                              "extern int n;\n"
                              "extern \"C\" void run(int d) { f<<<n, 32>>>(); }\n");
  const auto result = evaluate_launches(kernel, {8});
  ASSERT_TRUE(std::holds_alternative<Failure>(result));
  EXPECT_NE(std::get<Failure>(result).reason.find("the variable n"), std::string::npos);
}

TEST(FindDims, FixesWhatTheEntryInsistsOn) {
  for (const char* seed : {"seeds/lora/naive.cu", "seeds/lora/tiled.cu"}) {
    const auto dims = find_dims(parse(read(in_repository(seed))));
    ASSERT_TRUE(dims) << seed;
    EXPECT_EQ(dims->at(99), (std::vector<std::int64_t>{99, 16}));
  }
}

TEST(FindDims, LeavesAllFreeWhereNothingIsInsistedOn) {
  const auto dims = find_dims(parse("__global__ void f() {}\n"
                                    "extern \"C\" void run(int m, int n) { f<<<m, n>>>(); }\n"));
  ASSERT_TRUE(dims);
  EXPECT_EQ(dims->at(5), (std::vector<std::int64_t>{5, 5}));
}

} // namespace
} // namespace evo::test
