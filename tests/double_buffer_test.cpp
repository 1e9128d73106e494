// What double_buffer refuses, one reason at a time: the seed's kernel with a single change. And how
// it composes with other rewrites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::Change;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* label = "gemm/k0 double buffer";

std::string seed() {
  return test::read(test::in_repository("seeds/lora/tiled.cu"));
}

constexpr const char* core =
    "sum[i][j] += tiles.w[thread_row + i][k] * tiles.x[k][thread_col + j];";
constexpr const char* before_loop = "float sum[gemm_thread_m][gemm_thread_n] = {};";
constexpr const char* after_core = "__syncthreads();\n  }\n";
constexpr const char* view = "GemmTiles &tiles = *reinterpret_cast<GemmTiles *>(gemm_shared);";
constexpr const char* k_loop = "for (int k0 = 0; k0 < d; k0 += gemm_block_k)";
constexpr const char* launch_bytes = "sizeof(GemmTiles), stream>>>";
constexpr const char* x_stride = "i += gemm_threads) {\n      const int k = i / gemm_block_n;";
constexpr const char* x_store = "tiles.x[k][col] =";

std::string changed(const Change& change) {
  return test::changed(seed(), change);
}

class Refused : public testing::TestWithParam<Change> {};

TEST_P(Refused, BecauseOfOneChange) {
  EXPECT_THAT(test::labels(double_buffer(), changed(GetParam())), IsEmpty());
}

std::string also(const char* text, const std::string& more) {
  return text + (" " + more);
}

const Change refusals[] = {
    {"the computation writes a tile", {{core, also(core, "tiles.w[0][0] = 1.0f;")}}},
    {"the computation writes global memory", {{core, also(core, "Y[0] = 1.0f;")}}},
    {"the computation is inline assembly", {{core, also(core, "asm volatile(\"\");")}}},
    {"the computation may return", {{core, also(core, "if (d == 7) return;")}}},
    {"the loop may end early", {{after_core, also("if (d == 7) break;\n", after_core)}}},
    {"the loads may be cut short", {{x_store, also("if (d == 7) continue;", x_store)}}},
    {"there is a third barrier", {{core, also(core, "__syncthreads();")}}},
    {"a tile is read after the loop",
     {{"Y[row * d + col] = sum[i][j];", "Y[row * d + col] = sum[i][j] + tiles.w[0][0];"}}},
    {"a tile is written before the loop",
     {{before_loop, also(before_loop, "tiles.w[0][threadIdx.x % 8] = 0.0f;")}}},
    {"the loads read what the computation writes", {{"k0 + k < d ? W", "sum[0][0] < 4.0f ? W"}}},
    {"the loads read a tile", {{"k0 + k < d ? W", "tiles.x[0][0] < 4.0f ? W"}}},
    {"a pointer moves from iteration to iteration", {{after_core, also("W += 0;\n", after_core)}}},
    {"a pointer's origin is not seen",
     {{view, also(view, "const float *from = W; if (d == 7) from = X;")},
      {"? W[(block_row", "? from[(block_row"}}},
    {"a tile is added to", {{x_store, "tiles.x[k][col] +="}}},
    {"a load writes something else on the way", {{x_store, "tiles.x[k][col] = Y[0] ="}}},
    {"the number of loads is not a constant",
     {{x_stride, "i += blockDim.x) {\n const int k = i / gemm_block_n;"}}},
    {"a load's index may begin below zero",
     {{"for (int i = threadIdx.x; i < gemm_block_k",
       "for (int i = threadIdx.x - d; i < gemm_block_k"}}},
    {"the loop counts down", {{k_loop, "for (int k0 = d; k0 > 0; k0 -= gemm_block_k)"}}},
    {"the limit moves", {{core, also(core, "d = d + 0;")}}},
    {"the limit is read from memory",
     {{k_loop, "for (int k0 = 0; k0 < int(W[0]); k0 += gemm_block_k)"}}},
    {"the dynamic memory is seen twice",
     {{view, also(view, "float *other = gemm_shared; Y[0] = other[3];")}}},
    {"the tiles begin behind something else", {{"(gemm_shared);", "(gemm_shared + 16);"}}},
    {"the tiles are a union", {{"struct GemmTiles", "union GemmTiles"}}},
    {"the launch asks for a number of bytes", {{launch_bytes, "4096, stream>>>"}}},
    {"the launch asks for a multiple", {{launch_bytes, "sizeof(GemmTiles) * 2, stream>>>"}}},
    {"the card has too little shared memory", {{"gemm_block_k = 8;", "gemm_block_k = 128;"}}},
    {"the launch does not opt in to so much",
     {{"gemm_block_k = 8;", "gemm_block_k = 64;"},
      {"cudaFuncSetAttribute(gemm,", "cudaFuncSetAttribute(project,"}}},
    {"a tile's size would misalign the other's wide accesses",
     {{"float w[gemm_block_m][gemm_block_k];", "float w[gemm_block_m][gemm_block_k]; float odd;"},
      {core, also(core, "sum[0][0] += reinterpret_cast<float4 &>(tiles.x[k][0]).x;")},
      {"x[gemm_block_k][gemm_block_n];", "x[gemm_block_k + 1][gemm_block_n + 1];"}}},
};

INSTANTIATE_TEST_SUITE_P(DoubleBuffer, Refused, testing::ValuesIn(refusals));

class Accepted : public testing::TestWithParam<Change> {};

TEST_P(Accepted, InSpiteOfAChange) {
  const std::string source = changed(GetParam());
  EXPECT_THAT(test::labels(double_buffer(), source), ElementsAre(label));
  EXPECT_TRUE(test::parses(test::apply(double_buffer(), source, label)));
}

const Change accepted[] = {
    {"nothing changes", {}},
    {"64 KiB that the launch opts in to", {{"gemm_block_k = 8;", "gemm_block_k = 64;"}}},
    {"48 KiB without opting in",
     {{"gemm_block_k = 8;", "gemm_block_k = 32;"},
      {"cudaFuncSetAttribute(gemm,", "cudaFuncSetAttribute(project,"}}},
    {"the bytes are a named constant",
     {{"__global__ void gemm",
       "constexpr int gemm_bytes = sizeof(GemmTiles) + 64;\n__global__ void gemm"},
      {launch_bytes, "gemm_bytes, stream>>>"}}},
    {"the limit is smaller than the start may be",
     {{k_loop, "for (unsigned k0 = 16; k0 < d; k0 += gemm_block_k)"}}},
    {"the computation leaves an inner loop", {{core, also(core, "if (d == 7) break;")}}},
    {"a pointer with one origin",
     {{view, also(view, "const float *from = W + 0;")}, {"? W[(block_row", "? from[(block_row"}}},
    {"the computation is a function",
     {{"__global__ void gemm",
       "__device__ void multiply(const float *w, float x, float &sum) { sum += *w * x; }\n"
       "__global__ void gemm"},
      {core, "multiply(&tiles.w[thread_row + i][k], tiles.x[k][thread_col + j], sum[i][j]);"}}},
    {"a wide access that stays aligned",
     {{core, also(core, "sum[0][0] += reinterpret_cast<float4 &>(tiles.x[k][0]).x;")}}},
};

INSTANTIATE_TEST_SUITE_P(DoubleBuffer, Accepted, testing::ValuesIn(accepted));

using test::Trail;

std::string followed(const Trail& trail) {
  return test::followed(canonical(seed()), trail);
}

TEST(DoubleBuffer, IsProposedOnce) {
  const std::string once = followed({{&double_buffer(), label}});
  EXPECT_THAT(test::labels(double_buffer(), once), IsEmpty());
}

TEST(DoubleBuffer, CommutesWithUnrollingTheCore) {
  EXPECT_EQ(followed({{&unroll_loop(), "gemm/k unroll full"}, {&double_buffer(), label}}),
            followed({{&double_buffer(), label},
                      {&unroll_loop(), "gemm/k unroll full"},
                      {&unroll_loop(), "gemm/k#2 unroll full"}}));
}

TEST(DoubleBuffer, CommutesWithUnrollingItsLoop) {
  EXPECT_EQ(followed({{&unroll_loop(), "gemm/k0 unroll 2"}, {&double_buffer(), label}}),
            followed({{&double_buffer(), label}, {&unroll_loop(), "gemm/k0 unroll 2"}}));
}

TEST(DoubleBuffer, CommutesWithFusingTheEpilogue) {
  const std::string fuse = "gemm/epilogue fuse update";
  EXPECT_EQ(followed({{&fuse_epilogue(), fuse}, {&double_buffer(), label}}),
            followed({{&double_buffer(), label}, {&fuse_epilogue(), fuse}}));
}

} // namespace
} // namespace evo
