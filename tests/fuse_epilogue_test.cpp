#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/mutator.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

using testing::IsEmpty;
using testing::Not;

const Mutator& fuse_epilogue() {
  return *find_mutator("fuse_epilogue");
}

/// Or launches that are not in a straight line, as split_tail does.
bool leaves_no_update(const Mutator& mutator) {
  return &mutator == &fuse_epilogue() || mutator.about().name == "fold_low_rank" ||
         mutator.about().name == "split_tail";
}

/// A store of several elements at once, from shared memory by whatever thread, or on top of earlier
/// pieces of a sum, is none that fusion can add to: it refuses, and fusing first and widening or
/// staging the store then is the way.
TEST(FuseEpilogue, AppliesAfterEveryOtherRewriteOfTheSeedsButAWideOrStagedStore) {
  for (const char* name : {"naive.cu", "tiled.cu"}) {
    const std::string seed = canonical(read(in_repository("seeds/lora") / name));
    const std::vector<std::string> fusions = labels(fuse_epilogue(), seed);
    EXPECT_THAT(fusions, Not(IsEmpty()));
    for (const Mutator* mutator : mutators()) {
      const Proposals proposals(*mutator, seed);
      for (const std::string& label :
           leaves_no_update(*mutator) ? std::vector<std::string>{} : proposals.labels()) {
        const bool other_store = label.find("store vector") != std::string::npos ||
                                 mutator->about().name == "stage_epilogue" ||
                                 mutator->about().name == "sum_through_output" ||
                                 mutator->about().name == "persist_blocks";
        EXPECT_EQ(labels(fuse_epilogue(), proposals.apply(label)),
                  other_store ? std::vector<std::string>{} : fusions)
            << name << ": " << label;
      }
    }
  }
}

/// A producer that stores `value` after `code`, and an update that adds to it.
std::string kernel_storing(const std::string& code, const std::string& value) {
  return "__device__ void scale(float &x) { x *= 3.0f; }\n"
         "__device__ float twice(float x) { return 2.0f * x; }\n"
         "__global__ void make(const float *X, float *Y, int d) {\n"
         "  const int row = blockIdx.x;\n  const int col = threadIdx.x;\n"
         "  float sum = 0.0f;\n  float sums[2] = {};\n" +
         code + "  if (col < d) { Y[row * d + col] = " + value +
         "; }\n"
         "}\n"
         "__global__ void add(const float *X, float *Y, int d) {\n"
         "  const int row = blockIdx.x;\n  const int col = threadIdx.x;\n"
         "  if (col < d) { Y[row * d + col] += X[col]; }\n"
         "}\n"
         "extern \"C\" void entry(const float *X, float *Y, int d) {\n"
         "  make<<<d, 512>>>(X, Y, d);\n  add<<<d, 512>>>(X, Y, d);\n}\n";
}

TEST(FuseEpilogue, TakesValuesThatAreRoundedAlready) {
  for (const auto& [code, value] : std::vector<std::pair<std::string, std::string>>{
           {"sum += X[row] * X[col];", "sum"},
           {"sum = fmaf(X[row], X[col], sum);", "sum"},
           {"for (int i = 0; i < 2; ++i) sums[i] += X[i] * X[i];", "sums[1]"},
           {"sum += X[row];", "sum + sums[0]"},
           {"", "X[row]"},
           {"", "X[row] * X[col] + sum"},
       }) {
    EXPECT_THAT(labels(fuse_epilogue(), kernel_storing(code, value)), Not(IsEmpty()))
        << code << " ... " << value;
  }
}

TEST(FuseEpilogue, RefusesProductsHoweverTheyComeAbout) {
  for (const auto& [code, value] : std::vector<std::pair<std::string, std::string>>{
           {"", "X[row] * X[col]"},
           {"", "-(X[row] * X[col])"},
           {"", "row > 3 ? X[row] : X[row] * X[col]"},
           {"sum *= X[col];", "sum"},
           {"sum = row > 3 ? X[row] * X[col] : sum;", "sum"},
           {"const float p = X[row] * X[col]; sum = p;", "sum"},
           {"sums[0] = X[row] * X[col];", "sums[1]"},
           {"scale(sum);", "sum"},
           {"float &alias = sum; alias = X[row] * X[col];", "sum"},
           {"float *alias = sums; alias[1] = X[row] * X[col];", "sums[1]"},
           {"", "twice(X[row])"},
       }) {
    EXPECT_THAT(labels(fuse_epilogue(), kernel_storing(code, value)), IsEmpty())
        << code << " ... " << value;
  }
}

TEST(FuseEpilogue, BracketsWhatTheSumWouldTearApart) {
  const std::string fused =
      apply(fuse_epilogue(), kernel_storing("", "sum - sums[0]"), "make/epilogue fuse add");
  EXPECT_THAT(fused, testing::HasSubstr("Y[row * d + col] = (sum - sums[0]) + X[col];"));
}

} // namespace
} // namespace evo::test
