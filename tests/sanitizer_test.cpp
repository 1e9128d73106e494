#include "fitness/sanitizer.hpp"

#include <cstdlib>

#include <gmock/gmock.h>

#include "fitness/artifact_cache.hpp"
#include "fitness/builder.hpp"
#include "fitness/process.hpp"
#include "population/sanitizer_guard.hpp"
#include "tests/support/temporary_folder.hpp"

namespace evo {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* write_past_the_end = R"(========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at scale(float *, int)+0x90
=========     by thread (5,0,0) in block (1,0,0)
=========     Address 0x7f00 is out of bounds
=========
========= ERROR SUMMARY: 6 errors
)";

Problem lora() {
  return Problem::load(EVO_SOURCE_DIR "/seeds/lora/problem.toml");
}

TEST(Sanitizer, ToolsAreQuotedInOneLine) {
  EXPECT_EQ(first_error(write_past_the_end),
            "Invalid __global__ write of size 4 bytes at scale(float *, int)+0x90");
  EXPECT_EQ(first_error("========= COMPUTE-SANITIZER\n========= Error: Race reported between Write "
                        "access at gemm+0x10\n=========     and Read access at gemm+0x20\n"),
            "Error: Race reported between Write access at gemm+0x10");
  EXPECT_EQ(first_error("output of the kernel\n========= ERROR SUMMARY: 0 errors\n"), "");
}

TEST(Sanitizer, TheDriverHasBuffersOfTheExactSize) {
  const std::string driver = sanitizer_driver(lora());
  EXPECT_THAT(driver, HasSubstr("run({17161, 17161, 2096, 2096}, 17161, 131, 16);"));
  EXPECT_THAT(driver, HasSubstr("run({68121, 68121, 4176, 4176}, 68121, 261, 16);"));
  EXPECT_THAT(driver, HasSubstr("entry(inputs[0], inputs[1], inputs[2], inputs[3], output, dim0"));
}

/// A tool that behaves as a script says; $2 is the tool's name, $5 the driver, $6 the library.
class FakeSanitizer : public testing::Test {
protected:
  std::filesystem::path tool(const std::string& script) const {
    const std::filesystem::path file = folder_.path() / "compute-sanitizer";
    write_file(file, "#!/bin/sh\n" + script);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }

  Sanitizer sanitizer(const std::string& script) const {
    return {{.tool = tool(script), .nvcc = Builder::find_nvcc(), .cache = folder_.path() / "cache"},
            lora()};
  }

  TemporaryFolder folder_;
};

TEST_F(FakeSanitizer, EachToolHasItsVerdict) {
  const auto script = [](const std::string& faulty) {
    return "[ $2 = " + faulty + " ] || exit 0\ncat <<'END'\n" + write_past_the_end +
           "END\nexit 99\n";
  };
  for (const auto& [name, verdict] :
       {std::pair{"memcheck", Verdict::OutOfBounds}, std::pair{"racecheck", Verdict::Race},
        std::pair{"synccheck", Verdict::Race}}) {
    const auto finding = sanitizer(script(name)).check("kernel.so", {});
    ASSERT_TRUE(finding) << name;
    EXPECT_EQ(finding->verdict, verdict);
    EXPECT_EQ(finding->detail, std::string(name) +
                                   ": Invalid __global__ write of size 4 bytes at scale(float *, "
                                   "int)+0x90");
  }
}

TEST_F(FakeSanitizer, TheDriverBuildsAndSaysWhyItCannotStart) {
  Sanitizer real = sanitizer("exec \"$5\" \"$6\"");
  EXPECT_THROW(real.check("/nonexistent.so", {}), SanitizerFault);
}

TEST_F(FakeSanitizer, AToolThatFailsIsAFaultAndNoFinding) {
  Sanitizer broken = sanitizer("echo '========= Error: no device'; exit 3");
  try {
    broken.check("kernel.so", {});
    FAIL();
  } catch (const SanitizerFault& fault) {
    EXPECT_STREQ(fault.what(), "memcheck ended with exit code 3: Error: no device");
  }
}

TEST_F(FakeSanitizer, IsFoundBesideNvccOrOnThePath) {
  const auto file = tool("");
  EXPECT_EQ(Sanitizer::find(folder_.path() / "nvcc"), file);
  EXPECT_EQ(Sanitizer::find("/nonexistent/bin/nvcc"), std::nullopt);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder_.path().string() + ":" + path).c_str(), 1);
  EXPECT_EQ(Sanitizer::find("/nonexistent/bin/nvcc"), file);
  setenv("PATH", path.c_str(), 1);
}

/// Gives every candidate the judgement that it is told.
class Scripted : public FitnessEvaluator {
public:
  explicit Scripted(Judgement judgement) : judgement_(std::move(judgement)) {}
  std::variant<Built, BuildFailure> build(const Genome&, std::stop_token, Gates) const override {
    return Built{};
  }
  Judgement judge(const Genome&, const Built&, const Incumbent*, std::stop_token) override {
    return judgement_;
  }
  VerifyResponse verify(const Genome&, const Built&, bool, std::stop_token) override { return {}; }

private:
  Judgement judgement_;
};

class SanitizerGuardTest : public FakeSanitizer {
protected:
  static Judgement right(double speedup, bool confirmed = true) {
    Judgement judgement{.fitness = {}, .incumbent = {}, .confirmed = confirmed};
    judgement.fitness.verdict = Verdict::Ok;
    judgement.fitness.speedup = speedup;
    return judgement;
  }

  /// With a sanitizer that objects to everything.
  Verdict judged(Judgement judgement, const Incumbent* incumbent,
                 const std::string& script = "exit 99") {
    SanitizerGuard guard(std::make_unique<Scripted>(std::move(judgement)),
                         std::make_unique<Sanitizer>(sanitizer(script)));
    return guard.judge({}, {}, incumbent, {}).fitness.verdict;
  }

  static Incumbent incumbent(double speedup) {
    return {.id = "best", .built = {}, .fitness = right(speedup).fitness};
  }
};

TEST_F(SanitizerGuardTest, OnlyWhatWouldBeAnEliteIsChecked) {
  const Incumbent best = incumbent(2);
  EXPECT_EQ(judged(right(1), nullptr), Verdict::OutOfBounds) << "the first";
  EXPECT_EQ(judged(right(3), &best), Verdict::OutOfBounds);
  EXPECT_EQ(judged(right(1), &best), Verdict::Ok);
  EXPECT_EQ(judged(right(3, false), &best), Verdict::Ok) << "a screening";
  Judgement beside = right(3);
  beside.incumbent = right(4).fitness; // measured again, and better than thought
  EXPECT_EQ(judged(beside, &best), Verdict::Ok);
  Judgement wrong = right(3);
  wrong.fitness.verdict = Verdict::WrongAnswer;
  EXPECT_EQ(judged(wrong, nullptr), Verdict::WrongAnswer);
}

TEST_F(SanitizerGuardTest, OneThatDoesNotWorkCostsNobodyAnything) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(judged(right(1), nullptr, "exit 3"), Verdict::Ok);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("elites are not checked with it"));
}

} // namespace
} // namespace evo
