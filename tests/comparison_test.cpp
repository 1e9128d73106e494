// What a comparison is made of, as far as no card is needed: the order, the clocks, the figures.
#include <cmath>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "fitness/block_order.hpp"
#include "fitness/block_statistics.hpp"
#include "fitness/call_time.hpp"

namespace evo {
namespace {

using testing::_;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::Lt;
using testing::Pair;

TEST(BlockOrder, ReadsTheSameBackwardsWithTheReferenceInside) {
  std::mt19937_64 random(1);
  for (std::size_t contenders = 1; contenders <= 5; ++contenders) {
    const auto order = block_order(contenders, random);
    EXPECT_EQ(order, std::vector(order.rbegin(), order.rend()));
    EXPECT_EQ(order[contenders], contenders) << "the reference";
    EXPECT_EQ(std::set(order.begin(), order.end()).size(), contenders + 1);
    EXPECT_EQ(order.size(), 2 * (contenders + 1));
  }
}

TEST(BlockOrder, ContendersShareGoingFirst) {
  std::mt19937_64 random(1);
  std::map<std::size_t, int> first;
  for (int i = 0; i < 600; ++i) {
    ++first[block_order(3, random).front()];
  }
  EXPECT_THAT(first, Each(Pair(_, AllOf(Gt(150), Lt(250)))));
}

std::vector<CallTime> calls_of(int count, CallTime call) {
  return std::vector<CallTime>(static_cast<std::size_t>(count), call);
}

TEST(Clocks, AgreeOnAnHonestCall) {
  EXPECT_EQ(clocks_disagree(calls_of(7, {.event_ms = 4, .wall_ms = 4.03, .tail_ms = 0.01})), "");
  EXPECT_EQ(clocks_disagree(calls_of(7, {.event_ms = 0.003, .wall_ms = 0.03, .tail_ms = 0.01})),
            "");
}

TEST(Clocks, DisagreeWhenWorkOutlastsTheEvents) {
  const auto hidden = calls_of(7, {.event_ms = 0.01, .wall_ms = 4.1, .tail_ms = 4});
  EXPECT_THAT(clocks_disagree(hidden), HasSubstr("keep the device busy for"));
  EXPECT_NE(clocks_disagree(calls_of(7, {.event_ms = 4, .wall_ms = 5.5, .tail_ms = 0})), "");
}

TEST(Clocks, AHostThatIsKeptWaitingNowAndThenIsNoSign) {
  auto calls = calls_of(7, {.event_ms = 4, .wall_ms = 12, .tail_ms = 0.01});
  calls[3].wall_ms = 4.05; // once the processor was free
  calls[5].tail_ms = 9;
  EXPECT_EQ(clocks_disagree(calls), "");
}

TEST(Clocks, FewCallsSayNothing) {
  EXPECT_EQ(clocks_disagree(
                calls_of(least_calls_to_doubt - 1, {.event_ms = 0.01, .wall_ms = 4, .tail_ms = 4})),
            "");
}

TEST(TimeSummary, IsMedianAndInterquartileRange) {
  const TimeSummary summary = summarize(std::vector<double>{5, 1, 3, 2, 4});
  EXPECT_EQ(summary.median_ms, 3);
  EXPECT_EQ(summary.spread_ms, 2);
  EXPECT_EQ(summary.calls, 5);
  EXPECT_EQ(summarize(std::vector<double>{1, 2}).median_ms, 1.5);
}

TimedBlock block_of(std::vector<BlockTimes> sizes) {
  TimedBlock block;
  block.sizes = std::move(sizes);
  return block;
}

TEST(BlockStatistics, ALogRatioIsTheMeanOverSizesAndCalls) {
  const TimedBlock block =
      block_of({{.size = 64, .contenders_ms = {{4, 4}, {1, 1}}, .reference_ms = {2, 2}},
                {.size = 65, .contenders_ms = {{8, 2}, {4, 4}}, .reference_ms = {8, 8}}});
  EXPECT_NEAR(log_ratio(block, 0, 1), std::log(4.0) / 2, 1e-12); // 4x at one size, 1x at the other
  EXPECT_NEAR(log_ratio(block, 1, 0), -std::log(4.0) / 2, 1e-12);
  EXPECT_NEAR(log_ratio(block, 2, 1), std::log(2.0), 1e-12) << "the reference comes last";
  EXPECT_THAT(times_ms({block, block}, 0, 1), ElementsAre(8, 2, 8, 2));
  EXPECT_THAT(times_ms({block}, 2, 0), ElementsAre(2, 2));
}

} // namespace
} // namespace evo
