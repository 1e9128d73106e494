#include "fitness/cost_model.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace evo {
namespace {

constexpr int size = 4096;

/// A 128 x 128 x 8 tile with 8 x 8 outputs per thread, over the whole product.
LaunchCounts gemm() {
  LaunchCounts counts;
  counts.kernel = "gemm";
  counts.size = size;
  counts.blocks = 32 * 32;
  counts.threads = 256;
  counts.shared_bytes = 8192;
  const double steps = counts.blocks * size;
  counts.flops = 2.0 * size * size * size;
  counts.shared_load_wavefronts = steps * 8 * 16;
  counts.memory_instructions = steps * 8 * 17;
  counts.global_load_sectors = steps * 2 * 128 * 4 / 32;
  counts.barriers = steps / 8 * 2;
  return counts;
}

double ms(const LaunchCounts& launch, int registers = 128, int spill_bytes = 0,
          const char* arch = "sm_86") {
  const std::map<std::string, KernelResources> kernels{
      {"gemm", {.registers = registers, .shared_bytes = 0, .spill_bytes = spill_bytes}}};
  return estimate_ms(Card::for_arch(arch), {launch}, kernels, size);
}

TEST(CostModel, IsNeverFasterThanTheCardsArithmetic) {
  const double peak_ms = gemm().flops / 35.6e12 * 1e3;
  EXPECT_GT(ms(gemm()), peak_ms);
  EXPECT_LT(ms(gemm()), 3 * peak_ms);
}

TEST(CostModel, ChargesWhatSlowsAKernelDown) {
  LaunchCounts conflicts = gemm();
  conflicts.shared_load_wavefronts *= 4;
  EXPECT_GT(ms(conflicts), 1.3 * ms(gemm()));

  LaunchCounts uncoalesced = gemm();
  uncoalesced.global_load_sectors *= 16;
  EXPECT_GT(ms(uncoalesced), 1.3 * ms(gemm()));

  LaunchCounts crowded = gemm(); // one block instead of two per multiprocessor
  crowded.shared_bytes = 90 * 1024;
  EXPECT_GT(ms(crowded), ms(gemm()));

  LaunchCounts fewer_barriers = gemm();
  fewer_barriers.barriers /= 2;
  EXPECT_LT(ms(fewer_barriers), ms(gemm()));

  EXPECT_GT(ms(gemm(), 128, 400), ms(gemm()));
}

TEST(CostModel, CountsWholeWaves) {
  LaunchCounts one_more = gemm();
  one_more.blocks = 82 * 2 + 1;
  LaunchCounts full = one_more;
  full.blocks = 82 * 2;
  for (double LaunchCounts::* total : {&LaunchCounts::flops, &LaunchCounts::shared_load_wavefronts,
                                       &LaunchCounts::memory_instructions, &LaunchCounts::barriers,
                                       &LaunchCounts::global_load_sectors}) {
    one_more.*total *= one_more.blocks / gemm().blocks;
    full.*total *= full.blocks / gemm().blocks;
  }
  EXPECT_GT(ms(one_more), 1.3 * ms(full));
}

TEST(CostModel, GivesNoTimeToWhatFitsNowhere) {
  LaunchCounts huge = gemm();
  huge.shared_bytes = 200 * 1024;
  EXPECT_TRUE(std::isinf(ms(huge)));
  EXPECT_FALSE(std::isinf(ms(huge, 128, 0, "sm_90")));
}

TEST(CostModel, AddsUpTheLaunchesOfOneSize) {
  LaunchCounts elsewhere = gemm();
  elsewhere.size = 128;
  const Card card = Card::for_arch("sm_86");
  const double one = estimate_ms(card, {gemm()}, {}, size);
  EXPECT_DOUBLE_EQ(estimate_ms(card, {gemm(), elsewhere, gemm()}, {}, size), 2 * one);
}

TEST(CostModel, KnowsTheReferencesRateOfMeasuredCards) {
  const double flops = 2.0 * size * size * size;
  EXPECT_NEAR(estimate_reference_ms(Card::for_arch("sm_90"), flops), 2.75, 0.02);
}

TEST(CostModel, RefusesAnUnknownArchitecture) {
  EXPECT_THROW(Card::for_arch("sm_1"), InputError);
}

} // namespace
} // namespace evo
