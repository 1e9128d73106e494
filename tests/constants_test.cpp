#include "mutators/analysis/constants.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> describe(const Kernel& kernel) {
  std::vector<std::string> result;
  for (const Constant& constant : find_constants(kernel)) {
    result.push_back(constant.name + " = " + std::to_string(constant.value) +
                     (constant.free ? "" : " derived"));
  }
  return result;
}

const Constant& named(const std::vector<Constant>& constants, const std::string& name) {
  return *std::ranges::find(constants, name, &Constant::name);
}

TEST(FindConstants, TellsFreeFromDerived) {
  const Kernel kernel = parse("constexpr int a = 8;\n"
                              "constexpr unsigned b = (a) / 2;\n"
                              "constexpr float scale = 2.0f;\n"
                              "const int run_time = 3;\n"
                              "#define TWO constexpr int two = 2\n"
                              "TWO;\n"
                              "namespace n { constexpr int c = 5; }\n"
                              "__global__ void f() { constexpr int local = 4; }\n");
  EXPECT_THAT(describe(kernel), ElementsAre("a = 8", "b = 4 derived", "c = 5"));
}

TEST(SetConstant, ReplacesTheLiteralAlone) {
  const Kernel kernel = parse("constexpr int a = (8); // eight\n");
  const auto edit = set_constant(kernel, find_constants(kernel)[0], 16);
  ASSERT_TRUE(edit);
  EXPECT_EQ(apply_edits(kernel.source(), {*edit}), "constexpr int a = (16); // eight\n");
}

TEST(CheckRules, KeepsAssertionsAndExactDivisions) {
  const Kernel kernel = parse("constexpr int block = 64;\n"
                              "constexpr int thread = 4;\n"
                              "constexpr int odd = 7;\n"
                              "constexpr int threads = block / thread;\n"
                              "constexpr int rounded = odd / 2;\n"
                              "static_assert(threads >= 8);\n"
                              "constexpr int count = 10;\n"
                              "__device__ float mean(float sum) {\n"
                              "  const int twice = 2 * count;\n"
                              "  return sum / static_cast<float>(twice);\n}\n");
  const auto constants = find_constants(kernel);
  const auto check = [&](const std::string& name, std::int64_t value) {
    Evaluator evaluator(kernel, {{named(constants, name).declaration, value}});
    const auto failure = check_rules(find_rules(kernel), evaluator);
    return failure ? failure->reason : "";
  };
  EXPECT_EQ(check("thread", 8), "");
  EXPECT_EQ(check("odd", 9), "");
  EXPECT_THAT(check("count", 20), HasSubstr("results depend on"));
  EXPECT_THAT(check("thread", 16), HasSubstr("static_assert"));
  EXPECT_THAT(check("thread", 5), HasSubstr("remainder"));
  EXPECT_THAT(check("thread", 0), HasSubstr("division by zero"));
}

} // namespace
} // namespace evo::test
