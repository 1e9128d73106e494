#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/kernels.hpp"
#include "tests/support/rename.hpp"
#include "tests/support/tile_variants.hpp"

namespace evo::test {
namespace {

TEST(Rename, ReachesDeclarationsAndUsesOfEveryKind) {
  const Renamed renamed = rename("struct S { float x[2]; };\n"
                                 "__global__ void f(S *s) { s->x[threadIdx.x] = 0; }\n"
                                 "extern \"C\" void entry(S *s) { f<<<1, 2>>>(s); }\n");
  EXPECT_EQ(renamed.source, "struct name104 { float name103[2]; };\n"
                            "__global__ void name102(name104 *name101) "
                            "{ name101->name103[threadIdx.x] = 0; }\n"
                            "extern \"C\" void entry(name104 *name101) "
                            "{ name102<<<1, 2>>>(name101); }\n");
  EXPECT_EQ(rename_label("f/s unroll 4", renamed.names), "name102/name101 unroll 4");
}

TEST(Rename, KeepsTheSeedsWholeAndTheirShape) {
  for (const char* seed : {"seeds/lora/naive.cu", "seeds/lora/tiled.cu"}) {
    const std::string source = read(in_repository(seed));
    const Renamed renamed = rename(source);
    EXPECT_TRUE(parses(renamed.source)) << renamed.source;
    EXPECT_EQ(renamed.source.find("gemm_"), std::string::npos);
    EXPECT_EQ(shape(renamed.source), shape(source));
  }
}

TEST(Shape, TellsApartWhatDiffersByMoreThanNames) {
  EXPECT_EQ(shape("int f(int a, int b) { return a; }"), shape("int g(int x, int y) {return x;}"));
  EXPECT_NE(shape("int f(int a, int b) { return a; }"), shape("int f(int a, int b) { return b; }"));
}

TEST(TileVariants, KeepAssertionsAndExactDivisions) {
  std::vector<std::string> changes;
  for (const TileVariant& variant : tile_variants("constexpr int tile = 16;\n"
                                                  "constexpr int step = 8;\n"
                                                  "constexpr int odd = 12;\n"
                                                  "constexpr int steps = tile / step;\n"
                                                  "static_assert(tile < 32);\n")) {
    changes.push_back(variant.change);
  }
  EXPECT_THAT(changes, testing::ElementsAre("tile = 8", "step = 4", "step = 16"));
}

} // namespace
} // namespace evo::test
