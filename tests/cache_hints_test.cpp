// Which loads and stores get a hint and which do not, one change of the kernel at a time, and that
// other rewrites see through hints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/analysis/meaning.hpp"
#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using test::Trail;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* w_loads = "gemm/W loads read-only";
constexpr const char* x_loads = "gemm/X loads read-only";
constexpr const char* y_stores = "gemm/Y stores streaming";

std::string golden(const std::string& name) {
  return test::read(test::in_repository("tests/mutators/cache_hints") / name);
}

std::string seed() {
  return canonical(test::read(test::in_repository("seeds/lora/tiled.cu")));
}

struct Case {
  std::string name;
  std::string from;
  std::string to;
  std::string refused;
};

std::ostream& operator<<(std::ostream& stream, const Case& changed) {
  return stream << changed.name;
}

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, GetsNoHint) {
  const auto& [name, from, to, refused] = GetParam();
  const std::string source = golden("before.cu");
  ASSERT_THAT(test::labels(cache_hints(), source), Contains(refused));
  const std::string changed = test::replaced(source, from, to);
  ASSERT_TRUE(test::parses(changed));
  EXPECT_THAT(test::labels(cache_hints(), changed), Not(Contains(refused)));
}

constexpr const char* store = "Y[row * d + col] = sum[i][j];";
constexpr const char* launch = "(W, X, Y, d);";

const Case refusals[] = {
    {"a result that is read", store, "Y[row * d + col] += sum[i][j];", y_stores},
    {"a result that is read elsewhere", store, "Y[row * d + col] = sum[i][j] + Y[0];", y_stores},
    {"a result that a later launch reads", launch,
     "(W, X, Y, d);\n  gemm<<<dim3(1, 1), gemm_threads, sizeof(GemmTiles), stream>>>(W, Y, Y, d);",
     y_stores},
    {"an assignment whose value is used", store, "sum[i][j] = Y[row * d + col] = sum[i][j];",
     y_stores},
    {"another type", store, "reinterpret_cast<double *>(Y)[row * d + col] = sum[i][j];", y_stores},
    {"a value that is converted", store, "Y[row * d + col] = i;", y_stores},
    {"a store in a macro", store, "\n#define AT(place) place\nAT(Y[row * d + col] = sum[i][j]);",
     y_stores},
    {"an operand that is the result", launch, "(W, Y, Y, d);", x_loads},
    {"operands that the kernel writes", store,
     "Y[row * d + col] = sum[i][j];\n"
     "const_cast<float *>(W)[0] = 0.0f;",
     w_loads},
    {"memory that nobody knows", store, "Y[row * d + col] = sum[i][j];\nasm volatile(\"nop;\");",
     w_loads},
    {"an operand in a macro", "? W[(block_row + row) * d + k0 + k]",
     "\n#define AT(place) place\n? AT(W[(block_row + row) * d + k0 + k])", w_loads},
};

INSTANTIATE_TEST_SUITE_P(CacheHints, Refused, testing::ValuesIn(refusals));

TEST(CacheHints, StayOutOfFunctions) {
  const std::string source = test::replaced(
      test::replaced(golden("before.cu"), store, "put(&Y[row * d + col], sum[i][j]);"),
      "// Y = W X", "__device__ void put(float *to, float value) { *to = value; }\n// Y = W X");
  ASSERT_TRUE(test::parses(source));
  EXPECT_THAT(test::labels(cache_hints(), source), Not(Contains(y_stores)));
}

TEST(CacheHints, LeavesAsynchronousCopiesAlone) {
  const std::string source =
      test::followed(seed(), {{&vectorise_access(), "gemm/x copy vector 4"},
                              {&pipeline_copies(), "gemm/k0 stages 3 async x"}});
  EXPECT_THAT(test::labels(cache_hints(), source), Not(Contains(x_loads)));
  EXPECT_THAT(test::apply(cache_hints(), source, w_loads), HasSubstr("__ldg(&W["));
}

TEST(CacheHints, ApplyOnce) {
  for (const char* name : {"after.cu", "after_wide_load.cu", "after_wide_store.cu"}) {
    const std::string hinted = golden(name);
    const char* label = hinted.find("__stcs") != std::string::npos     ? y_stores
                        : hinted.find("__ldg(&X") != std::string::npos ? x_loads
                                                                       : w_loads;
    EXPECT_THAT(test::labels(cache_hints(), hinted), Not(Contains(label)));
  }
}

TEST(CacheHints, MeaningFollowsThem) {
  for (const char* name : {"", "_wide_load", "_wide_store"}) {
    const Kernel before = test::parse(golden("before" + std::string(name) + ".cu"));
    const std::string after = golden("after" + std::string(name) + ".cu");
    EXPECT_TRUE(same_meaning(before, test::parse(after))) << name;
  }
  const Kernel wide = test::parse(golden("before_wide_store.cu"));
  EXPECT_FALSE(
      same_meaning(wide, test::parse(test::replaced(golden("after_wide_store.cu"),
                                                    "make_float2(sum[i][j], sum[i][j + 1])",
                                                    "make_float2(sum[i][j], sum[i][j])"))));
}

/// What fuses the low-rank term, so that nothing reads Y later.
const Trail fused{{&fuse_epilogue(), "gemm/epilogue fuse update"}};

const Trail climb{
    {&relayout_tile(), "gemm/w transpose"},         {&load_fragments(), "gemm/k fragments"},
    {&vectorise_access(), "gemm/w copy vector 4"},  {&vectorise_access(), "gemm/x copy vector 4"},
    {&vectorise_access(), "gemm/Y store vector 4"}, {&remap_threads(), "gemm/lanes 4x8"},
    {&double_buffer(), "gemm/k0 double buffer"},    {&peel_edges(), "gemm/k0 peel edges"}};

const Trail hints{{&cache_hints(), w_loads}, {&cache_hints(), x_loads}, {&cache_hints(), y_stores}};

TEST(CacheHints, ComeFirstOrLast) {
  const std::string source = test::followed(seed(), fused);
  EXPECT_EQ(test::followed(test::followed(source, climb), hints),
            test::followed(test::followed(source, hints), climb));
}

TEST(CacheHints, MayBecomeAsynchronousCopies) {
  const Trail pipeline{{&vectorise_access(), "gemm/x copy vector 4"},
                       {&pipeline_copies(), "gemm/k0 stages 3 async x"}};
  EXPECT_EQ(test::followed(test::apply(cache_hints(), seed(), x_loads), pipeline),
            test::followed(seed(), pipeline));
}

TEST(CacheHints, FuseStillFindsTheOperandsOfTheUpdate) {
  const Trail first{{&cache_hints(), "update/A loads read-only"},
                    {&cache_hints(), "update/T loads read-only"},
                    fused[0]};
  const std::string source = test::followed(seed(), first);
  EXPECT_THAT(source, HasSubstr("__ldg(&A[row * rank + k]) * __ldg(&T[k * d + col])"));
}

} // namespace
} // namespace evo
