#include "population/accuracy_table.hpp"

#include <gmock/gmock.h>

#include "population/evaluator.hpp"

namespace evo {
namespace {

using testing::HasSubstr;

Verification some_verification() {
  CaseResult bound{.name = "uniform",
                   .size = 4096,
                   .binding = true,
                   .figures = {.ideal_error = 0.05,
                               .max_error = 0.1,
                               .violations = 0,
                               .rms_error = 3e-6,
                               .reference_rms_error = 1e-6,
                               .output_rms = 0.5,
                               .zero_passes = false},
                   .fault = {}};
  CaseResult free{.name = "large",
                  .size = 3584,
                  .figures = {.ideal_error = 2,
                              .max_error = no_number,
                              .violations = 7,
                              .rms_error = no_number,
                              .reference_rms_error = 1e-3,
                              .output_rms = 0,
                              .zero_passes = false},
                  .fault = "bad"};
  return {.level = Level::Default, .cases = {bound, free}, .headroom = 4, .calls = 500};
}

TEST(AccuracyTable, HasARowPerCaseAndSize) {
  const std::string table = accuracy_table(some_verification());
  EXPECT_THAT(table,
              HasSubstr("\n| uniform | 4096 | 0.5 | 2e-06 | 0.05 | yes | 0.1 | 3 | 0 | yes |\n"));
  EXPECT_THAT(
      table,
      HasSubstr(
          "\n| large | 3584 | 0 | no number | 2 | no | no number | no number | 7 | (no) |\n"));
}

TEST(AccuracyTable, IsSummedUp) {
  EXPECT_EQ(describe(some_verification()), "1 checks of level default at the sizes 3584, 4096, 500 "
                                           "calls, scale headroom 4");
}

TEST(Verified, AFailureHasNoTimesButItsCases) {
  Fitness fitness{.verdict = Verdict::Ok, .detail = {}, .sizes = {{.size = 64}}, .speedup = 2};
  fitness.measured = true;
  VerifyResponse response;
  response.verdict = Verdict::Ok;
  response.verification = some_verification();
  EXPECT_EQ(verified(fitness, response).speedup, 2);
  EXPECT_EQ(verified(fitness, response).verification->headroom, 4);

  response.fail(Verdict::WrongAnswer, "in a case");
  const Fitness failed = verified(fitness, response);
  EXPECT_EQ(failed.verdict, Verdict::WrongAnswer);
  EXPECT_EQ(failed.detail, "in a case");
  EXPECT_TRUE(failed.sizes.empty());
  EXPECT_EQ(failed.speedup, 0);
  EXPECT_TRUE(failed.measured);
  EXPECT_EQ(failed.verification->cases.size(), 2u);
}

} // namespace
} // namespace evo
