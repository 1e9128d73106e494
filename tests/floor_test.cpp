#include "fitness/floor.hpp"

#include <gmock/gmock.h>

namespace evo {
namespace {

using testing::HasSubstr;

// As their drivers report them.
constexpr CardRates h200{.multiprocessors = 132,
                         .clock_mhz = 1980,
                         .memory_clock_mhz = 3201,
                         .bus_bits = 6144,
                         .l2_bytes = 60e6};
constexpr CardRates rtx3090{.multiprocessors = 82,
                            .clock_mhz = 1695,
                            .memory_clock_mhz = 9751,
                            .bus_bits = 384,
                            .l2_bytes = 6e6};

TensorSpec square(const std::string& name) {
  return {.name = name, .shape = {"d", "d"}, .distribution = {}, .scale = 1, .fan_in = {}};
}

Problem product() {
  Problem problem;
  problem.vary = "d";
  problem.dim_order = {"d"};
  problem.inputs = {square("W"), square("X")};
  problem.output = square("Y");
  problem.flops = {{.coefficient = 2, .dims = {"d", "d", "d"}}};
  return problem;
}

TEST(Floor, IsTheDatasheetsPeak) {
  // Dense TFLOP/s: 132 multiprocessors at 1.98 GHz; an RTX 3090 does 35.6 in fp32, and 284 TOPS.
  const double flops = 2.0 * 4096 * 4096 * 4096;
  const auto tera = [&](const CardRates& card, const std::string& arch, PrecisionClass precision) {
    return flops / Floor(product(), card, arch).ms(4096, precision) / 1e9;
  };
  EXPECT_NEAR(tera(rtx3090, "sm_86", PrecisionClass::Ffma), 35.6, 0.1);
  EXPECT_NEAR(tera(rtx3090, "sm_86", PrecisionClass::Int8), 284.7, 0.5);
  EXPECT_NEAR(tera(h200, "sm_90", PrecisionClass::Ffma), 66.9, 0.1);
  EXPECT_NEAR(tera(h200, "sm_90", PrecisionClass::Fp16), 1070, 1);
}

TEST(Floor, NothingMeasuredIsBelowIt) {
  // PyTorch in fp32, and the fastest known kernels, on an H200 at d = 4096.
  const Floor floor(product(), h200, "sm_90");
  EXPECT_LT(floor.ms(4096, PrecisionClass::Ffma), 2.77);
  EXPECT_LT(floor.ms(4096, PrecisionClass::Fp16), 0.42);
  EXPECT_GT(floor.ms(4096, PrecisionClass::Ffma), 2);
}

TEST(Floor, AnUnreadClassIsTheFastest) {
  const Floor floor(product(), h200, "sm_90");
  EXPECT_EQ(floor.ms(4096, PrecisionClass::Unknown), floor.ms(4096, PrecisionClass::Int8));
}

TEST(Floor, SmallProductsAreBoundByWhatL2DoesNotKeep) {
  Problem copy = product();
  copy.flops.clear();
  const Floor floor(copy, rtx3090, "sm_86");
  EXPECT_EQ(floor.ms(512, PrecisionClass::Ffma), 0) << "3 MB stay in L2";
  const double bytes = 3.0 * 4 * 4096 * 4096 - 6e6;
  EXPECT_NEAR(floor.ms(4096, PrecisionClass::Ffma), bytes / 936.1e9 * 1e3, 1e-3);
}

TEST(Floor, AnUnknownCardBoundsNothing) {
  EXPECT_EQ(Floor(product(), {}, "sm_90").ms(4096, PrecisionClass::Ffma), 0);
  EXPECT_EQ(operations_per_clock("sm_999", PrecisionClass::Ffma), 0);
  EXPECT_EQ(operations_per_clock("sm_75", PrecisionClass::Tf32), 0);
}

TEST(Floor, WhoeverIsFasterIsNamed) {
  const Floor floor(product(), h200, "sm_90");
  const auto takes = [](double ms) {
    return std::vector<SizeResult>{{.size = 4096, .median_ms = ms}};
  };
  EXPECT_EQ(below_floor(takes(2.1), floor, PrecisionClass::Ffma), "");
  EXPECT_EQ(below_floor(takes(2.0), floor, PrecisionClass::Ffma), "") << "within the margin";
  EXPECT_THAT(below_floor(takes(1), floor, PrecisionClass::Ffma),
              HasSubstr("takes 1 ms at 4096, where the card needs at least 2.05"));
  EXPECT_EQ(below_floor(takes(1), floor, PrecisionClass::Fp16), "");
  EXPECT_THAT(below_floor(takes(0.01), floor, PrecisionClass::Unknown), HasSubstr("its fastest"));
}

} // namespace
} // namespace evo
