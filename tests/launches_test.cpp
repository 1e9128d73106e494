#include "mutators/analysis/launches.hpp"

#include <clang/AST/Decl.h>
#include <gtest/gtest.h>

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

} // namespace
} // namespace evo::test
