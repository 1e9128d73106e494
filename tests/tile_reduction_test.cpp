// What tile_reduction recognises and what it leaves to the other rewrites; its goldens run in
// mutators_test.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/analysis/meaning.hpp"
#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/rename.hpp"

namespace evo::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string seed(const std::string& name) {
  return canonical(read(in_repository("seeds/lora") / name));
}

/// The product alone, so that a proof is a short one.
std::string product() {
  return canonical(R"(#include <cuda_runtime.h>
constexpr int threads = 64;
__global__ void product(const float *W, const float *X, float *Y, int d) {
  const int col = blockIdx.x * threads + threadIdx.x;
  const int row = blockIdx.y;
  if (col < d) {
    float sum = 0.0f;
    for (int k = 0; k < d; ++k) {
      sum += W[row * d + k] * X[k * d + col];
    }
    Y[row * d + col] = sum;
  }
}
extern "C" cudaError_t entry(const float *W, const float *X, float *Y, int d, void *workspace,
                             cudaStream_t stream) {
  product<<<dim3((d + threads - 1) / threads, d), threads, 0, stream>>>(W, X, Y, d);
  return cudaGetLastError();
}
)");
}

const char* const small_tile = "product/k tile 32x32x8, 2x2 per thread";

std::string tiled(const std::string& source) {
  return apply(tile_reduction(), source, small_tile);
}

/// A kernel's text from its name on, without spaces.
std::string code_of(const std::string& source, const std::string& kernel) {
  const std::size_t begin = source.find("__global__ void " + kernel);
  std::string code = source.substr(begin, source.find("\n}\n", begin) - begin);
  std::erase_if(code, [](char c) { return c == ' ' || c == '\n'; });
  return code;
}

TEST(TileReduction, MakesOfThePlainSeedWhatTheTiledSeedIs) {
  const std::string source =
      apply(tile_reduction(), seed("naive.cu"), "multiply/k tile 64x64x8, 4x4 per thread");
  std::string code = code_of(source, "multiply");
  for (const auto& [ours, theirs] :
       {std::pair("multiply", "gemm"), std::pair("Multiply", "Gemm")}) {
    while (code.find(ours) != std::string::npos) {
      code = replaced(code, ours, theirs);
    }
  }
  EXPECT_EQ(code, code_of(seed("tiled.cu"), "gemm"));
}

TEST(TileReduction, LeavesItsKernelToEveryOtherRewrite) {
  const std::string wide = followed(
      seed("naive.cu"), {{&tile_reduction(), "project/k tile 16x32x64, 2x2 per thread"},
                         {&tile_reduction(), "multiply/k tile 64x64x8, 4x4 per thread"},
                         {&reshape_tile(), "multiply/multiply_block_m 128, multiply_thread_m 8"},
                         {&reshape_tile(), "multiply/multiply_block_n 128, multiply_thread_n 8"},
                         {&fuse_epilogue(), "multiply/epilogue fuse update"},
                         {&relayout_tile(), "multiply/w transpose"},
                         {&load_fragments(), "multiply/k fragments"},
                         {&load_fragments(), "project/k fragments"},
                         {&vectorise_access(), "multiply/w fragment vector 4"},
                         {&vectorise_access(), "multiply/x fragment vector 4"},
                         {&vectorise_access(), "multiply/w copy vector 4"},
                         {&vectorise_access(), "multiply/x copy vector 4"},
                         {&vectorise_access(), "project/b copy vector 4"},
                         {&vectorise_access(), "multiply/Y store vector 4"}});
  EXPECT_TRUE(same_meaning(parse(seed("naive.cu")), parse(wide), {{67, 16}, {80, 16}}));
  EXPECT_TRUE(parses(followed(wide, {{&double_buffer(), "multiply/k0 double buffer"},
                                     {&double_buffer(), "project/k0 double buffer"},
                                     {&relayout_tile(), "multiply/w pad 4"},
                                     {&relayout_tile(), "project/x swizzle"},
                                     {&launch_bounds(), "multiply/launch bounds 2"},
                                     {&unroll_loop(), "multiply/k unroll 2"}})));
}

TEST(TileReduction, AppliesAfterEveryOtherRewrite) {
  for (const Mutator* mutator : mutators()) {
    SCOPED_TRACE(mutator->about().name);
    const Proposals proposals(*mutator, seed("naive.cu"));
    const std::vector<std::string> all = proposals.labels();
    if (!all.empty() && mutator != &tile_reduction()) {
      const std::string child = proposals.apply(all[all.size() / 2]);
      EXPECT_THAT(labels(tile_reduction(), child),
                  Contains("multiply/k tile 64x64x8, 4x4 per thread"));
    }
  }
}

TEST(TileReduction, KeepsThePragmasAndTheBoundOfItsParent) {
  std::string source = replaced(product(), "    for (int k", "#pragma unroll 4\n    for (int k");
  source = replaced(source, "void product", "void __launch_bounds__(threads, 3) product");
  EXPECT_THAT(tiled(source), AllOf(HasSubstr("#pragma unroll 4\n    for (int k = 0; k < product_"),
                                   HasSubstr("__launch_bounds__(product_threads, 3)"),
                                   Not(HasSubstr("constexpr int threads"))));
}

TEST(TileReduction, CoversAMatrixOfFewRowsWithTilesAsHigh) {
  EXPECT_THAT(labels(tile_reduction(), seed("tiled.cu")),
              AllOf(Contains("project/k tile 16x32x64, 2x2 per thread"),
                    Not(Contains(HasSubstr("project/k tile 64x")))));
}

TEST(TileReduction, LeavesShortSumsToFusion) {
  EXPECT_THAT(labels(tile_reduction(), seed("naive.cu")), Not(Contains(HasSubstr("update"))));
}

TEST(TileReduction, RecognisesTheSameInOtherForms) {
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {"sum += W[row * d + k] * X[k * d + col]",
            "sum = X[k * d + col] * W[d * row + k] + sum"},
           {"sum += W[row * d + k] * X[k * d + col]",
            "const float w = W[row * d + k]; const int at = k * d + col; sum += w * X[at]"},
           {"sum += W[row * d + k]", "sum += W[blockIdx.y * d + k]"},
           {"const int row = blockIdx.y;", "const size_t row = blockIdx.y;"},
           {"if (col < d) {", "if (col >= d) { return; } {"},
           {"if (col < d) {", "if (d > col && row < d) {"},
           {"Y[row * d + col] = sum", "const float half = 2.0f * sum; Y[row * d + col] = half + d"},
           {"Y[row * d + col] = sum", "const int at = row * d + col; Y[at] = sum + W[at]"},
           {"X[k * d + col]", "W[k * d + col]"},
           {"k < d;", "k < d - 3;"},
           {"int k = 0;", "int k = 2;"},
       }) {
    SCOPED_TRACE(other);
    const std::string source = replaced(product(), one, other);
    EXPECT_TRUE(same_meaning(parse(source), parse(tiled(source))));
  }
}

TEST(TileReduction, KeepsOtherConditions) {
  EXPECT_THAT(tiled(replaced(product(), "col < d", "col < d && d < 5000")),
              HasSubstr("if (row < d && col < d && (d < 5000)) {"));
}

TEST(TileReduction, LaysTilesAsTheirArraysLie) {
  EXPECT_THAT(tiled(product()), AllOf(HasSubstr("w[product_block_m][product_block_k]"),
                                      HasSubstr("x[product_block_k][product_block_n]")));
  std::string transposed = replaced(product(), "W[row * d + k]", "W[k * d + row]");
  transposed = replaced(transposed, "X[k * d + col]", "X[col * d + k]");
  EXPECT_THAT(tiled(transposed), AllOf(HasSubstr("w[product_block_k][product_block_m]"),
                                       HasSubstr("x[product_block_n][product_block_k]")));
}

TEST(TileReduction, RefusesWhatIsNoSuchSum) {
  for (const auto& [right, wrong] : std::vector<std::pair<std::string, std::string>>{
           {"W[row * d + k] * X[k * d + col]", "W[row * d + k] * X[row * d + col]"},
           {"W[row * d + k] * X[k * d + col]", "W[row * d + k] * X[k * d + k]"},
           {"W[row * d + k] * X[k * d + col]", "W[row * d + k] * X[k * d + col] + 1.0f"},
           {"W[row * d + k] * X[k * d + col]", "W[row * d + k] * X[k * d + col] * W[k]"},
           {"W[row * d + k] * X[k * d + col]", "W[row * d + k] * Y[k * d + col]"},
           {"W[row * d + k] * X[k * d + col]", "W[row * d + k] * X[k * d + threadIdx.x]"},
           {"W[row * d + k] * X[k * d + col]", "sum * W[row * d + k] * X[k * d + col]"},
           {"sum += ", "sum = "},
           {"float sum = 0.0f", "float sum = 1.0f"},
           {"k < d;", "k < row;"},
           {"++k", "k += 2"},
           {"if (col < d)", "if (col < d - 1 && row != 3)"},
           {"if (col < d)", "if (threadIdx.x < 40 && col < d)"},
           {"Y[row * d + col] = sum", "Y[row * d + col] = sum; Y[row * d + col] = 0.0f"},
           {"Y[row * d + col] = sum", "Y[row * d + col] = sum + blockDim.x"},
           {"Y[row * d + col] = sum", "Y[row * d + d - col - 1] = sum"},
           {"    float sum", "    __syncthreads(); float sum"},
           {"threads, 0, stream", "threads, 4, stream"},
       }) {
    EXPECT_THAT(labels(tile_reduction(), replaced(product(), right, wrong)), IsEmpty()) << wrong;
  }
  const std::string launch = "product<<<dim3((d + threads - 1) / threads, d), threads, 0, "
                             "stream>>>(W, X, Y, d);";
  EXPECT_THAT(labels(tile_reduction(), replaced(product(), launch, launch + launch)), IsEmpty());
}

} // namespace
} // namespace evo::test
