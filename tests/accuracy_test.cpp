#include "fitness/accuracy.hpp"

#include <cmath>
#include <limits>
#include <map>

#include <gmock/gmock.h>

namespace evo {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr double rtol = 1e-4;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A good result where the tolerance tells right from wrong.
CaseFigures decidable() {
  return {.ideal_error = 0.1,
          .max_error = 0.2,
          .violations = 0,
          .rms_error = 2e-6,
          .reference_rms_error = 1e-6,
          .output_rms = 1,
          .zero_passes = false};
}

/// A good result where it does not, for not even the ideal is within it.
CaseFigures undecidable() {
  CaseFigures figures = decidable();
  figures.ideal_error = 1.5;
  figures.max_error = 3;
  figures.violations = 12;
  return figures;
}

std::string fault(const CaseFigures& figures) {
  return find_fault(figures, rtol).value_or("");
}

TEST(Rule, TheToleranceBindsWhereItDecides) {
  EXPECT_EQ(fault(decidable()), "");
  CaseFigures figures = decidable();
  figures.rms_error = 1e-3; // far beyond twice the reference's, and allowed
  EXPECT_EQ(fault(figures), "");
  figures.violations = 1;
  figures.max_error = 1.5;
  EXPECT_EQ(fault(figures),
            "1 elements differ from the reference by more than the tolerance, by up "
            "to 1.5 times it");
}

TEST(Rule, AMarginOfTwoMakesACaseDecidable) {
  CaseFigures figures = decidable();
  figures.ideal_error = 0.5;
  EXPECT_TRUE(figures.decidable());
  figures.ideal_error = 0.51;
  EXPECT_FALSE(figures.decidable());
  figures.ideal_error = nan;
  EXPECT_FALSE(figures.decidable());
}

TEST(Rule, ElsewhereTheErrorIsComparedWithTheReferences) {
  EXPECT_EQ(fault(undecidable()), "");
  CaseFigures figures = undecidable();
  figures.rms_error = 2.5e-6;
  EXPECT_THAT(fault(figures), HasSubstr("the rms error is 2.5 times the reference's own"));
}

TEST(Rule, WhereZerosWouldPassTheErrorIsRelative) {
  CaseFigures figures = decidable();
  figures.zero_passes = true;
  figures.output_rms = 1e-5;
  figures.reference_rms_error = 1e-11;
  figures.rms_error = 9e-10;
  EXPECT_EQ(fault(figures), "");
  figures.rms_error = 1e-5; // zeros
  EXPECT_THAT(fault(figures), HasSubstr("zeros would pass there"));
  figures.rms_error = 1.1e-9;
  EXPECT_NE(fault(figures), "");
  figures.reference_rms_error = 1e-9; // the reference is no better
  EXPECT_EQ(fault(figures), "");
}

TEST(Rule, AZeroOutputIsExactlyZero) {
  CaseFigures figures;
  figures.zero_passes = true;
  EXPECT_EQ(fault(figures), "");
  figures.rms_error = 1e-30;
  EXPECT_NE(fault(figures), "");
}

TEST(Rule, ANaNNeverPasses) {
  for (const double bad : {nan, no_number, std::numeric_limits<double>::infinity()}) {
    for (const CaseFigures& good : {decidable(), undecidable()}) {
      for (const auto member : {&CaseFigures::max_error, &CaseFigures::rms_error}) {
        CaseFigures figures = good;
        figures.*member = bad;
        EXPECT_NE(fault(figures), "");
        figures.reference_rms_error = bad; // the reference's own is no excuse
        figures.ideal_error = bad;
        EXPECT_NE(fault(figures), "");
      }
    }
  }
}

const std::vector<CaseOutline> outlines{
    {"harness", Level::Harness, 0}, {"uniform", Level::Default, 0}, {"large", Level::Strict, 0},
    {"sY = 12", Level::Strict, 12}, {"sY = 1", Level::Default, 1},  {"sY = 4", Level::Strict, 4},
};

/// All pass but those named.
class Cases {
public:
  explicit Cases(std::vector<std::string> bad = {}) : bad_(std::move(bad)) {}

  Verification verify(const VerifyPlan& plan) {
    return verify_cases(outlines, plan, rtol, [this](std::size_t index, int size) {
      ran_[outlines[index].name].push_back(size);
      CaseFigures figures = decidable();
      figures.violations = std::ranges::count(bad_, outlines[index].name);
      return figures;
    });
  }

  std::map<std::string, std::vector<int>> ran_; // sizes by case

private:
  std::vector<std::string> bad_;
};

TEST(Cases, EachRunsOnceAndEachSizeIsSeen) {
  Cases cases;
  const Verification found = cases.verify({.level = Level::Strict, .sizes = {64, 65}});
  EXPECT_THAT(found.cases, SizeIs(6));
  EXPECT_EQ(cases.ran_["harness"], std::vector{64});
  EXPECT_EQ(cases.ran_["uniform"], std::vector{65});
  EXPECT_EQ(found.headroom, 12);
  EXPECT_EQ(found.first_fault(), nullptr);
  EXPECT_THAT(found.sizes(), ElementsAre(64, 65));
}

TEST(Cases, FewCasesRunAtEverySize) {
  Cases cases;
  cases.verify({.level = Level::Harness, .sizes = {64, 65, 66}});
  EXPECT_EQ(cases.ran_["harness"], (std::vector{64, 65, 66}));
  EXPECT_FALSE(cases.ran_.contains("uniform"));
}

TEST(Cases, TheSweepGoesOnBeyondTheLevelUntilOneFails) {
  Cases cases({"sY = 4", "large"});
  const Verification found = cases.verify({.level = Level::Default, .sizes = {64}});
  EXPECT_EQ(found.first_fault(), nullptr) << "the level does not list it";
  EXPECT_EQ(found.headroom, 1);
  EXPECT_EQ(cases.ran_["sY = 4"], std::vector{64});
  EXPECT_FALSE(cases.ran_.contains("sY = 12"));
  EXPECT_FALSE(cases.ran_.contains("large")) << "of no use to anyone";
}

TEST(Cases, TheFirstFailureEndsIt) {
  Cases cases({"uniform"});
  const Verification found = cases.verify({.level = Level::Default, .sizes = {64, 65}});
  ASSERT_NE(found.first_fault(), nullptr);
  EXPECT_EQ(found.first_fault()->name, "uniform");
  EXPECT_EQ(found.first_fault()->size, 65);
  EXPECT_THAT(found.cases, SizeIs(2));
  EXPECT_EQ(found.headroom, 0);
}

TEST(Cases, InFullEveryCaseRunsAtEverySize) {
  Cases cases({"sY = 1"});
  const Verification found =
      cases.verify({.level = Level::Harness, .sizes = {64, 65, 66}, .full = true});
  EXPECT_THAT(found.cases, SizeIs(6 * 3));
  for (const auto& [name, sizes] : cases.ran_) {
    EXPECT_THAT(sizes, ElementsAre(64, 65, 66)) << name;
  }
  EXPECT_EQ(found.first_fault(), nullptr);
  EXPECT_EQ(found.headroom, 0) << "a larger scale that passes is none above one that fails";
}

TEST(Sizes, EndsAnOddOneOneThatLeavesFourAndARandomOne) {
  const std::vector<int> measured{3584, 3999, 4096, 4608};
  const std::vector<int> sizes = verification_sizes(measured, 7);
  EXPECT_EQ(sizes.front(), 3584);
  EXPECT_EQ(sizes.back(), 4608);
  EXPECT_THAT(sizes, Contains(testing::ResultOf([](int d) { return d % 2; }, 1)));
  EXPECT_THAT(sizes, Contains(testing::ResultOf([](int d) { return d % 8; }, 4)));
  EXPECT_THAT(sizes, Each(testing::AllOf(testing::Ge(3584), testing::Le(4608))));
  EXPECT_THAT(sizes, SizeIs(testing::AllOf(testing::Ge(4u), testing::Le(5u))));
  EXPECT_EQ(sizes, verification_sizes(measured, 7));
  EXPECT_NE(sizes, verification_sizes(measured, 8));
}

TEST(Sizes, OneMeasuredSizeIsTheOnlyOne) {
  EXPECT_THAT(verification_sizes({4096}, 7), ElementsAre(4096));
}

TEST(Levels, AreSpelt) {
  for (const Level level : all_levels) {
    EXPECT_EQ(level_from(to_string(level)), level);
  }
  EXPECT_FALSE(level_from("hard"));
}

} // namespace
} // namespace evo
