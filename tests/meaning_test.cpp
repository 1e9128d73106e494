// What kernels compute, evaluated on ring elements: the seeds and their rewrites mean the same, and
// what computes anything else is told apart.
#include "mutators/analysis/meaning.hpp"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/leaf_helpers.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using Dims = std::vector<std::vector<std::int64_t>>;

std::string seed(const std::string& name) {
  return canonical(read(in_repository("seeds/lora") / name));
}

/// A whole file around the body of a kernel f(const float *x, float *y, int n), which `threads`
/// threads of `blocks` blocks run.
std::string file(const std::string& body, const std::string& before = "") {
  return R"(#include <cuda_runtime.h>
constexpr int threads = 4;
)" + before +
         "__global__ void f(const float *x, float *y, int n) {\n"
         "const int i = blockIdx.x * threads + threadIdx.x;\n" +
         body + R"(}
extern "C" cudaError_t run(const float *x, float *y, int n, void *workspace, cudaStream_t stream) {
  f<<<(n + threads - 1) / threads, threads, 0, stream>>>(x, y, n);
  return cudaGetLastError();
})";
}

const Dims some_dims{{9}, {16}};

std::string failure(const std::string& source) {
  const auto result = meaning(parse(source), some_dims.front());
  const auto* reason = std::get_if<Failure>(&result);
  return reason != nullptr ? reason->reason : "";
}

bool same(const std::string& before, const std::string& after) {
  const Kernel first = parse(before);
  EXPECT_EQ(failure(before), "");
  return same_meaning(first, parse(after), some_dims);
}

const std::string twice = file("if (i < n) { y[i] = 2.0f * x[i] + x[0]; }");

TEST(Meaning, FollowsFloatsHoweverTheyAreWritten) {
  for (const char* body : {
           "if (i < n) { y[i] = x[i] - -x[i] + x[0]; }",
           "if (i >= n) return; float sum = x[i]; sum += x[i]; y[i] = x[0] + sum;",
           "if (i < n) { y[i] = fmaf(x[i], 2.0f, x[0]); }",
           "float v; if (i < n) { v = x[i]; } else { v = 0.0f; } if (i < n) y[i] = v + v + x[0];",
           "if (i < n) { float part[2] = {}; part[0] += x[i]; part[1] = part[0] + x[0];"
           "  y[i] = part[0] + part[1]; }",
           "if (i < n) { const float part[2] = {x[i], 2.0f}; y[i] = part[0] * part[1] + x[0]; }",
           "__shared__ float tile[threads]; tile[threadIdx.x] = i < n ? x[i] : 0.0f;"
           "__syncthreads(); if (i < n) { y[i] = (float)2 * tile[threadIdx.x] + x[0]; }",
           "float2 pair; pair.x = 0.0f; pair.y = x[0]; if (i < n) { pair.x = x[i];"
           "  y[i] = pair.x * 2.0f + pair.y; }",
           "if (i < n) { y[i] = 1.0; y[i] *= 2.0 * x[i]; y[i] += __ldg(x); }",
       }) {
    EXPECT_TRUE(same(twice, file(body))) << body;
  }
}

TEST(Meaning, FollowsVectors) {
  const std::string vectors =
      file("if (n % 4 == 0) { if (4 * i < n) {"
           "  const float4 v = *reinterpret_cast<const float4 *>(&x[4 * i]);"
           "  *reinterpret_cast<float4 *>(&y[4 * i]) ="
           "      make_float4(2.0f * v.x + x[0], 2.0f * v.y + x[0], 2.0f * v.z + x[0],"
           "                  2.0f * v.w + x[0]); } }"
           "else if (i < n) { y[i] = 2.0f * x[i] + x[0]; }");
  EXPECT_TRUE(same(twice, vectors));
  EXPECT_FALSE(same(twice, replaced(vectors, "v.z", "v.w")));
  const std::string staged =
      replaced(replaced(vectors, "const float4 v =", "float4 staged[2]; staged[i % 2] ="),
               "*reinterpret_cast<float4 *>",
               "const float4 v = staged[i % 2]; "
               "*reinterpret_cast<float4 *>");
  EXPECT_TRUE(same(twice, staged));
  EXPECT_FALSE(same(twice, replaced(staged, "= staged[i % 2]", "= staged[0]")));
}

TEST(Meaning, TellsApartWhatDiffers) {
  for (const char* body : {
           "if (i < n) { y[i] = 2.0f * x[i]; }",                     // a term dropped
           "if (i < n) { y[i] = 2.0f * x[i] + x[1]; }",              // another element
           "if (i < n) { y[i] = 3.0f * x[i] + x[0]; }",              // another factor
           "if (i < n - 1) { y[i] = 2.0f * x[i] + x[0]; }",          // an edge missing
           "if (i < n) { y[n - 1 - i] = 2.0f * x[i] + x[0]; }",      // another place
           "if (i <= n) { y[i] = 2.0f * x[i] + x[0]; }",             // an element too many
           "if (i < n) { y[i] = (x[i] + 1.0f) * x[i] + x[0]; }",     // another degree
           "if (i < n) { y[i] = 2.0f * x[i] + x[0]; y[i] += x[i]; }" // once too often
       }) {
    EXPECT_FALSE(same(twice, file(body))) << body;
  }
}

TEST(Meaning, RefusesWhatItCannotFollow) {
  const auto kernel = [](const std::string& value) {
    return file("if (i < n) y[i] = " + value + ";");
  };
  EXPECT_THAT(failure(kernel("x[i] / x[0]")), HasSubstr("operator"));
  EXPECT_THAT(failure(kernel("x[i] * 0.5f")), HasSubstr("not whole"));
  EXPECT_THAT(failure(kernel("x[i] < 0.0f ? 0.0f : x[i]")), HasSubstr("a float decides"));
  EXPECT_THAT(failure(kernel("fmaxf(x[i], 0.0f)")), HasSubstr("magnitude"));
  EXPECT_THAT(failure(kernel("(float)(int)x[i]")), HasSubstr("not followed"));
  EXPECT_THAT(failure(kernel("__shfl_xor_sync(~0u, x[i], 1)")), HasSubstr("__shfl_xor_sync"));
  EXPECT_THAT(failure(file("if (i < n) atomicAdd(&y[i], x[i]);")), HasSubstr("atomicAdd"));
  EXPECT_THAT(failure(file("if (x[i] > 0.0f) y[i] = x[i];")), HasSubstr("a float decides"));
  EXPECT_THAT(failure(file("if (i < n) reinterpret_cast<int *>(y)[i] = 1;")),
              HasSubstr("not followed"));
}

TEST(Meaning, RefusesWhatNothingWrote) {
  for (const char* body : {
           "float sum; if (i < n) y[i] = sum + x[i];",
           "float sum; if (i < n) y[i] = 0.0f * sum;",
           "if (i < n) y[i] += x[i];",
           "__shared__ float tile[threads]; if (i < n) tile[threadIdx.x] = x[i];"
           "__syncthreads(); if (i < n) y[i] = tile[threads - 1 - threadIdx.x];",
           "for (int k = 0; k < 2; ++k) { float part[2]; if (i < n && k == 1) y[i] = part[0];"
           "  part[0] = x[0]; }",
       }) {
    EXPECT_THAT(failure(file(body)), HasSubstr("nothing wrote")) << body;
  }
}

TEST(Meaning, KeepsSharedMemoryForOneBlockOnly) {
  EXPECT_THAT(failure(file("__shared__ float tile[threads];"
                           "if (blockIdx.x == 0) tile[threadIdx.x] = x[threadIdx.x];"
                           "__syncthreads(); if (i < n) y[i] = tile[threadIdx.x];")),
              HasSubstr("nothing wrote"));
}

TEST(Meaning, EndsTheWorkspaceWhereItsFunctionSays) {
  const std::string source = seed("naive.cu");
  const std::string small =
      replaced(source, "sizeof(float) * r * d;", "sizeof(float) * r * d - 4;");
  EXPECT_TRUE(std::holds_alternative<Meaning>(meaning(parse(source), {20, 16})));
  const auto result = meaning(parse(small), {20, 16});
  ASSERT_TRUE(std::holds_alternative<Failure>(result));
  EXPECT_EQ(std::get<Failure>(result).kind, Failure::Kind::Fault);
  EXPECT_THAT(std::get<Failure>(result).reason, HasSubstr("outside"));
}

TEST(Meaning, SaysNothingOfARankThatTheEntryRefuses) {
  const auto result = meaning(parse(seed("naive.cu")), {20, 8});
  EXPECT_TRUE(std::get<Meaning>(result).outputs.empty());
  EXPECT_FALSE(same_meaning(parse(seed("naive.cu")), parse(seed("naive.cu")), {{20, 8}}));
}

/// A helper for registers of two numbers, and their lower and upper one.
std::string packing(const std::string& body) {
  std::string helpers;
  for (const char* helper : {"pack_bf16", "low_bf16", "high_bf16"}) {
    helpers += leaf_helper_text(helper);
  }
  return file(body, helpers);
}

TEST(Meaning, FollowsRegistersThroughMemory) {
  const std::string through = packing(R"(
    __shared__ unsigned words[threads];
    unsigned *kept = reinterpret_cast<unsigned *>(y);
    if (i < n) kept[i] = pack_bf16(x[i], x[0]);
    __syncthreads();
    words[threadIdx.x] = i < n ? kept[i] : 0;
    if (i < n) y[i] = 2.0f * low_bf16(words[threadIdx.x]) + high_bf16(words[threadIdx.x]);)");
  EXPECT_EQ(failure(through), "");
  EXPECT_TRUE(same(twice, through));
  EXPECT_FALSE(same(twice, replaced(through, "2.0f * low_bf16", "2.0f * high_bf16")));
}

TEST(Meaning, RefusesTwoNumbersAsOneFloat) {
  const std::string stored =
      "if (i < n) reinterpret_cast<unsigned *>(y)[i] = pack_bf16(x[i], x[0]);";
  EXPECT_THAT(failure(packing(stored + "if (i < n) y[i] = 2.0f * y[i];")),
              HasSubstr("nothing wrote"));
  EXPECT_EQ(failure(packing(stored + "if (i < n) y[i] = x[i]; if (i < n) y[i] = 2.0f * y[i];")),
            "");
}

/// tests/tensor_core/product.cu without tensor cores.
const std::string plain_product = R"(#include <cuda_runtime.h>
__global__ void product(const float *A, const float *B, float *Y, int depth) {
  const int row = blockIdx.x;
  const int col = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < depth; ++k) {
    sum += A[row * depth + k] * B[k * 64 + col];
  }
  Y[row * 64 + col] = sum;
}
extern "C" cudaError_t entry(const float *A, const float *B, float *Y, int depth, void *workspace,
                             cudaStream_t stream) {
  product<<<64, 64, 0, stream>>>(A, B, Y, depth);
  return cudaGetLastError();
})";

TEST(TensorCoreProduct, MeansAProductHoweverItRounds) {
  const std::string product = read(in_repository("tests/tensor_core/product.cu"));
  const auto same_product = [&](const std::string& other) {
    return same_meaning(parse(plain_product), parse(other), {{64}});
  };
  const auto result = meaning(parse(product), {64});
  ASSERT_EQ(std::get_if<Failure>(&result), nullptr) << std::get<Failure>(result).reason;
  EXPECT_TRUE(same_product(product));
  // Rounding is not followed, so low parts are 0; the product of the high ones is not.
  EXPECT_TRUE(same_product(replaced(product, "a_high[i], b_low[half])", "a_low[i], b_low[half])")));
  EXPECT_FALSE(
      same_product(replaced(product, "a_high[i], b_high[half])", "a_high[i], b_low[half])")));
  for (const auto& [right, wrong] : std::vector<std::pair<std::string, std::string>>{
           {"{{high[0], high[1]}, {high[2], high[3]}}", "{{high[0], high[2]}, {high[1], high[3]}}"},
           {"ldmatrix_x4_trans(high,", "ldmatrix_x4(high,"},
           {"step + lane / 16 * 8", "step"},
           {"lane / 4 + part / 2 * 8", "lane / 4 * 2 + part / 2"},
       }) {
    EXPECT_FALSE(same_product(replaced(product, right, wrong))) << wrong;
  }
}

TEST(TensorCoreProduct, IsRefusedWhereItIsNotFollowed) {
  const std::string product = read(in_repository("tests/tensor_core/product.cu"));
  const auto reason = [&](const std::string& what, const std::string& by) {
    const auto result = meaning(parse(replaced(product, what, by)), {64});
    const auto* refused = std::get_if<Failure>(&result);
    return refused != nullptr ? refused->reason : "";
  };
  EXPECT_THAT(reason("        ldmatrix_x4(a_high[i]", "if (lane < 16) ldmatrix_x4(a_high[i]"),
              HasSubstr("not all lanes of a warp reach"));
  EXPECT_THAT(reason("&tiles.a_high[m][step + lane / 16 * 8]", "A"),
              HasSubstr("not in shared memory"));
  EXPECT_THAT(reason("padding = 8", "padding = 4"),
              HasSubstr("a misaligned access to tiles.a_high"));
  EXPECT_NE(reason("ldmatrix_x4(a_high[i], &tiles.a_high[m][step + lane / 16 * 8]);", ""), "");
}

TEST(TellingDims, CoverSeveralBlocksOfTheLargestTile) {
  EXPECT_EQ(telling_dims(parse(seed("tiled.cu"))), (Dims{{65, 16}, {80, 16}}));
  EXPECT_EQ(telling_dims(parse(replaced(seed("tiled.cu"), "block_n = 64", "block_n = 128"))),
            (Dims{{129, 16}, {144, 16}}));
  EXPECT_EQ(telling_dims(parse(seed("naive.cu"))), (Dims{{67, 16}, {80, 16}}));
  EXPECT_THAT(telling_dims(parse("#include <cuda_runtime.h>\n")), IsEmpty());
}

TEST(TellingDims, OfABlockAreOneTileCutShortAndWhole) {
  EXPECT_EQ(telling_dims_of_a_block(parse(seed("tiled.cu"))), (Dims{{33, 16}, {64, 16}}));
  const std::string wide = replaced(seed("tiled.cu"), "block_n = 64", "block_n = 512");
  EXPECT_EQ(telling_dims_of_a_block(parse(wide)), (Dims{{73, 16}, {144, 16}}));
}

TEST(Lora, SeedsMeanTheSame) {
  EXPECT_TRUE(same_meaning(parse(seed("naive.cu")), parse(seed("tiled.cu"))));
}

TEST(Lora, LongSeedsMeanTheSameOverSeveralBlocksOfBoth) {
  EXPECT_TRUE(same_meaning(parse(seed("naive.cu")), parse(seed("tiled.cu")), {{257, 16}}));
}

TEST(Lora, MistakesMeanSomethingElse) {
  const Kernel tiled = parse(seed("tiled.cu"));
  const std::vector<std::pair<const char*, const char*>> mistakes{
      {"Y[row * d + col] += sum", "Y[row * d + col] = sum"},
      {"B[k * rank + row]", "B[row * rank + k]"},
      {"A[row * rank + k] * T[k * d + col]", "A[row * rank + k] * T[k * d + row]"},
      {"tiles.w[thread_row + i][k]", "tiles.w[thread_row + i][0]"},
      {"k < rank; ++k) {\n      sum += A", "k < rank - 1; ++k) {\n      sum += A"},
      {"float *T = static_cast<float *>(workspace)", "float *T = Y"},
  };
  for (const auto& [right, wrong] : mistakes) {
    const Kernel other = parse(replaced(seed("tiled.cu"), right, wrong));
    EXPECT_FALSE(same_meaning(tiled, other, {{65, 16}})) << wrong;
  }
  const std::string no_edge =
      replaced(replaced(seed("tiled.cu"), "row < d && k0 + k < d", "row < d"),
               "k0 + k < d && block_col", "block_col");
  EXPECT_FALSE(same_meaning(tiled, parse(no_edge), {{65, 16}}));
}

class EveryMutator : public testing::TestWithParam<const Mutator*> {
protected:
  void expect_seeds_keep_their_meaning(
      std::size_t most, const std::function<bool(const Kernel&, const Kernel&)>& same) const {
    for (const char* name : {"naive.cu", "tiled.cu"}) {
      const Kernel kernel = parse(seed(name));
      const Proposals proposals(*GetParam(), seed(name));
      const std::vector<std::string> labels = proposals.labels();
      const std::size_t stride = std::max<std::size_t>(1, (labels.size() + most - 1) / most);
      for (std::size_t i = 0; i < labels.size(); i += stride) {
        EXPECT_TRUE(same(kernel, parse(proposals.apply(labels[i])))) << name << ' ' << labels[i];
      }
    }
  }
};

TEST_P(EveryMutator, KeepsTheSeedsMeaning) {
  expect_seeds_keep_their_meaning(2, [](const Kernel& before, const Kernel& after) {
    return same_meaning(before, after, {{37, 16}, {80, 16}});
  });
}

TEST_P(EveryMutator, LongKeepsTheSeedsMeaningInEveryProposal) {
  expect_seeds_keep_their_meaning(
      1000, [](const Kernel& before, const Kernel& after) { return same_meaning(before, after); });
}

INSTANTIATE_TEST_SUITE_P(Mutators, EveryMutator, testing::ValuesIn(mutators()),
                         [](const auto& test) { return std::string(test.param->about().name); });

} // namespace
} // namespace evo::test
