#include "mutators/analysis/dependence_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::parse;

/// make writes one buffer, add reads one and updates another; the body is the test's.
Kernel entry(const std::string& body) {
  return parse("__global__ void make(float *out) { out[threadIdx.x] = 1.0f; }\n"
               "__global__ void add(const float *in, float *out) {\n"
               "  float *place = out + threadIdx.x;\n"
               "  *place += in[threadIdx.x];\n"
               "}\n"
               "extern \"C\" void entry(float *P, float *Q, void *workspace, cudaStream_t s,\n"
               "                      cudaStream_t t, int n) {\n" +
               body + "}\n");
}

TEST(DependenceGraph, OrdersTheSeed) {
  for (const char* seed : {"seeds/lora/naive.cu", "seeds/lora/tiled.cu"}) {
    const Kernel kernel = parse(test::read(test::in_repository(seed)));
    const auto graph = DependenceGraph::of(kernel);
    ASSERT_TRUE(graph) << seed;
    EXPECT_EQ(graph->dependence(0, 1), std::nullopt) << "the product does not need T";
    EXPECT_EQ(graph->dependence(0, 2), Dependence::ReadAfterWrite);
    EXPECT_EQ(graph->dependence(1, 2), Dependence::ReadAfterWrite);
    EXPECT_FALSE(graph->may_move_before({2}, 1));
    EXPECT_TRUE(graph->is_only_consumer(1, 2));
    EXPECT_THAT(graph->needed_between(0, 2), testing::ElementsAre(1));
  }
}

TEST(DependenceGraph, TellsTheKindsOfDependence) {
  const Kernel kernel = entry("add<<<1, 32, 0, s>>>(P, Q);\n"
                              "make<<<1, 32, 0, s>>>(P);\n"
                              "make<<<1, 32, 0, s>>>(P);\n");
  const auto graph = DependenceGraph::of(kernel);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->dependence(0, 1), Dependence::WriteAfterRead);
  EXPECT_EQ(graph->dependence(1, 2), Dependence::WriteAfterWrite);
}

TEST(DependenceGraph, PointersIntoOneBufferMayOverlap) {
  const Kernel kernel = entry("float *low = static_cast<float *>(workspace);\n"
                              "float *high = low + n;\n"
                              "make<<<1, 32>>>(low);\n"
                              "make<<<1, 32>>>(P);\n"
                              "add<<<1, 32>>>(&high[2], Q);\n");
  const auto graph = DependenceGraph::of(kernel);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->dependence(0, 2), Dependence::ReadAfterWrite);
  EXPECT_EQ(graph->dependence(1, 2), std::nullopt);
  EXPECT_TRUE(graph->may_move_before({1}, 0));
  EXPECT_FALSE(graph->may_move_before({2}, 0));
}

TEST(DependenceGraph, APointerOfUnknownOriginMayPointAnywhere) {
  const Kernel kernel = entry("float *either = n > 0 ? P : Q;\n"
                              "make<<<1, 32>>>(either);\n"
                              "add<<<1, 32>>>(P, Q);\n");
  const auto graph = DependenceGraph::of(kernel);
  ASSERT_TRUE(graph);
  EXPECT_TRUE(graph->dependence(0, 1));
}

TEST(DependenceGraph, SeesAConsumerBetween) {
  const Kernel kernel = entry("make<<<1, 32>>>(P);\n"
                              "add<<<1, 32>>>(P, Q);\n"
                              "add<<<1, 32>>>(Q, P);\n");
  const auto graph = DependenceGraph::of(kernel);
  ASSERT_TRUE(graph);
  EXPECT_FALSE(graph->is_only_consumer(0, 2));
  EXPECT_TRUE(graph->is_only_consumer(0, 1));
  EXPECT_THAT(graph->needed_between(0, 2), testing::ElementsAre(1));
}

TEST(DependenceGraph, AnArgumentDefinedLaterHoldsALaunchBack) {
  const Kernel kernel = entry("make<<<1, 32>>>(P);\n"
                              "float *late = Q;\n"
                              "make<<<1, 32>>>(late);\n");
  const auto graph = DependenceGraph::of(kernel);
  ASSERT_TRUE(graph);
  EXPECT_FALSE(graph->dependence(0, 1));
  EXPECT_FALSE(graph->may_move_before({1}, 0));
}

TEST(DependenceGraph, ALaunchStaysBehindTheCallThatPreparesItsKernel) {
  const Kernel kernel =
      entry("make<<<1, 32>>>(P);\n"
            "cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);\n"
            "add<<<1, 32, 65536>>>(static_cast<float *>(workspace), Q);\n");
  const auto graph = DependenceGraph::of(kernel);
  ASSERT_TRUE(graph);
  EXPECT_FALSE(graph->dependence(0, 1));
  EXPECT_FALSE(graph->may_move_before({1}, 0));
}

TEST(DependenceGraph, InlineAssemblyDoesWhatThePointersTypeAllows) {
  const Kernel kernel = parse("__global__ void f(const float *in, float *out) {\n"
                              "  asm volatile(\"st.global.f32 [%0], 0f3f800000;\" :: \"l\"(out));\n"
                              "}\n"
                              "extern \"C\" void entry(float *P, float *Q) {\n"
                              "  f<<<1, 1>>>(P, Q);\n  f<<<1, 1>>>(Q, P);\n}\n");
  const auto graph = DependenceGraph::of(kernel);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->dependence(0, 1), Dependence::ReadAfterWrite);
}

TEST(DependenceGraph, RefusesWhatIsNoStraightLineInOneStream) {
  for (const char* body : {
           "make<<<1, 32>>>(P); if (n) { return; } make<<<1, 32>>>(Q);",
           "make<<<1, 32>>>(P); if (n) make<<<1, 32>>>(Q);",
           "for (int i = 0; i < n; ++i) { make<<<1, 32>>>(P); }",
           "make<<<1, 32, 0, s>>>(P); make<<<1, 32, 0, t>>>(Q);",
           "make<<<1, 32>>>(P); cudaMemsetAsync(P, 0, 4); make<<<1, 32>>>(Q);",
       }) {
    EXPECT_FALSE(DependenceGraph::of(entry(body))) << body;
  }
}

} // namespace
} // namespace evo
