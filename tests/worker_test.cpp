// The real worker, through its client: the model backend, and what it says when it cannot work.
#include <gmock/gmock.h>

#include "fitness/worker_client.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr WorkerDeadlines deadlines{.prepare = 60s, .judge = 60s};

PrepareRequest model_of(const Problem& problem) {
  PrepareRequest request;
  request.problem = problem;
  request.input_seed = 7;
  return request;
}

std::string replaced(std::string text, const std::string& before, const std::string& after) {
  const auto at = text.find(before);
  EXPECT_NE(at, std::string::npos) << before;
  return text.replace(at, before.size(), after);
}

std::string naive() {
  return test::read(test::in_repository("seeds/lora/naive.cu"));
}
std::string tiled() {
  return test::read(test::in_repository("seeds/lora/tiled.cu"));
}

class ModelBackend : public testing::Test {
protected:
  JudgeResponse judge(const std::string& source, const std::vector<int>& count_sizes = {}) {
    JudgeRequest request;
    request.library = test::cpu_library(source).string();
    request.sizes = {17, 67};
    request.count_sizes = count_sizes;
    return client_.judge(request);
  }

  void expect_failure(const std::string& source, Verdict verdict, const std::string& detail) {
    const JudgeResponse response = judge(source);
    EXPECT_EQ(response.fitness.verdict, verdict) << response.fitness.detail;
    EXPECT_THAT(response.fitness.detail, HasSubstr(detail));
    EXPECT_TRUE(response.fitness.sizes.empty());
    EXPECT_TRUE(response.counts.empty());
  }

  VerifyResponse verify(const std::string& source, Level level, bool full = false) {
    VerifyRequest request;
    request.library = test::cpu_library(source).string();
    request.level = level;
    request.sizes = {17, 67};
    request.full = full;
    return client_.verify(request);
  }

  /// Right on what is timed, wrong on the case that `detail` names.
  void expect_fault(const std::string& source, const std::string& detail) {
    EXPECT_EQ(verify(source, Level::Harness).verdict, Verdict::Ok);
    const VerifyResponse response = verify(source, Level::Default);
    EXPECT_EQ(response.verdict, Verdict::WrongAnswer);
    EXPECT_THAT(response.detail, HasSubstr(detail));
  }

  WorkerClient client_{EVO_WORKER_PROGRAM, model_of(test::lora()), deadlines};
};

TEST_F(ModelBackend, DescribesItself) {
  const PrepareResponse& prepared = client_.prepare();
  EXPECT_EQ(prepared.error, "");
  EXPECT_EQ(prepared.device_name, "CPU");
  EXPECT_EQ(prepared.arch, "");
  EXPECT_EQ(prepared.reference_precision, "fp32");
  EXPECT_NE(prepared.torch_version, "");
}

TEST_F(ModelBackend, TheSeedsAreRight) {
  for (const std::string& source : {naive(), tiled()}) {
    const JudgeResponse response = judge(source);
    ASSERT_EQ(response.fitness.verdict, Verdict::Ok) << response.fitness.detail;
    EXPECT_FALSE(response.fitness.measured);
    ASSERT_EQ(response.fitness.sizes.size(), 2u);
    EXPECT_EQ(response.fitness.sizes[1].size, 67);
    EXPECT_EQ(response.fitness.sizes[1].median_ms, 0);
    EXPECT_GT(response.fitness.sizes[1].relative_l2_error, 0);
    EXPECT_LT(response.fitness.sizes[1].relative_l2_error, 1e-6);
    EXPECT_TRUE(response.counts.empty()) << "counted without being asked to";
  }
  EXPECT_EQ(client_.restarts(), 0);
}

TEST_F(ModelBackend, LaunchesAreCountedAtTheSizesAskedFor) {
  for (const std::string& source : {naive(), tiled()}) {
    const JudgeResponse response = judge(source, {1024, 4096});
    ASSERT_EQ(response.fitness.verdict, Verdict::Ok) << response.fitness.detail;
    ASSERT_EQ(response.counts.size(), 6u); // three launches at two sizes
    for (std::size_t i = 0; i < 2; ++i) {
      const double d = i == 0 ? 1024 : 4096;
      const LaunchCounts& product = response.counts[3 * i + 1];
      EXPECT_EQ(product.size, d);
      EXPECT_NEAR(product.flops / (2 * d * d * d), 1, 0.01) << product.kernel;
    }
  }
}

TEST_F(ModelBackend, ARequestIsRepeatable) {
  EXPECT_EQ(nlohmann::json(judge(tiled(), {1024})), nlohmann::json(judge(tiled(), {1024})));
}

TEST_F(ModelBackend, AWrongElementIsFoundOnIntegers) {
  expect_failure(
      replaced(naive(), "k < d; ++k) {\n      sum += W", "k < d - 1; ++k) {\n      sum += W"),
      Verdict::WrongAnswer, "at d = 17 with small integers");
}

TEST_F(ModelBackend, ALostLowPartIsFoundOnReals) {
  expect_failure(replaced(naive(), "sum += W[row * d + k] * X[k * d + col];",
                          "sum += static_cast<int>(W[row * d + k] * 64) / 64.0f * X[k * d + col];"),
                 Verdict::WrongAnswer, "differ from the reference at d = 17");
}

TEST_F(ModelBackend, AMissingBarrierIsARace) {
  expect_failure(replaced(tiled(), "    __syncthreads();\n", ""), Verdict::Race, "tiles");
}

TEST_F(ModelBackend, AMissingGuardIsOutOfBounds) {
  expect_failure(replaced(tiled(), "if (row < d && col < d)", "if (col < d)"), Verdict::OutOfBounds,
                 "at d = 17");
}

TEST_F(ModelBackend, TheSeedsPassTheDefaultCasesAtEverySize) {
  for (const std::string& source : {naive(), tiled()}) {
    const VerifyResponse response = verify(source, Level::Default, true);
    EXPECT_EQ(response.verdict, Verdict::Ok) << response.detail;
    EXPECT_EQ(response.verification.cases.size(), 2 * test::lora().cases.size());
    EXPECT_EQ(response.verification.headroom, 12);
    EXPECT_EQ(response.verification.calls, 2 * static_cast<int>(test::lora().cases.size()));
  }
}

constexpr const char* store = "Y[row * d + col] += sum;";

TEST_F(ModelBackend, AResultRoundedToSteps) {
  expect_fault(
      replaced(naive(), store,
               "Y[row * d + col] = static_cast<int>((Y[row * d + col] + sum) * 5e4f) / 5e4f;"),
      "in the case \"1e-3 times everything\" at d = ");
}

TEST_F(ModelBackend, AScaleOfZeroMakesNaNs) {
  expect_fault(
      replaced(naive(), "sum += W[row * d + k] * X[k * d + col];",
               "sum += W[row * d + k] * (X[k * d + col] / X[k * d + col] * X[k * d + col]);"),
      "in the case \"zeros\" at d = ");
}

TEST_F(ModelBackend, ARelativeErrorUsesUpTheScaleHeadroom) {
  const std::string source =
      replaced(naive(), store, std::string(store) + " Y[row * d + col] *= 1.00012f;");
  expect_fault(source, "in the case \"1e-3 times everything\" at d = ");
  EXPECT_EQ(verify(source, Level::Harness).verification.headroom, 1);
}

TEST_F(ModelBackend, AVerifiedLibraryThatIsNoneIsNoBuild) {
  VerifyRequest request;
  request.library = "/nonexistent.so";
  request.sizes = {17};
  EXPECT_EQ(client_.verify(request).verdict, Verdict::NoBuild);
}

TEST_F(ModelBackend, ALibraryThatIsNoneIsNoBuild) {
  JudgeRequest request;
  request.library = "/nonexistent.so";
  request.sizes = {17};
  EXPECT_EQ(client_.judge(request).fitness.verdict, Verdict::NoBuild);
}

TEST(Worker, KnowsNoOperator) {
  const Problem relu = Problem::load(test::in_repository("tests/operators/relu/problem.toml"));
  WorkerClient client(EVO_WORKER_PROGRAM, model_of(relu), deadlines);
  JudgeRequest request;
  request.library = test::cpu_library(test::read(relu.seeds.at(0))).string();
  request.sizes = {33};
  const Fitness fitness = client.judge(request).fitness;
  EXPECT_EQ(fitness.verdict, Verdict::Ok) << fitness.detail;
}

TEST(Worker, ABadReferenceIsOneSentence) {
  const auto error_of = [](const std::string& reference) {
    Problem problem = test::lora();
    problem.reference = reference;
    return WorkerClient(EVO_WORKER_PROGRAM, model_of(problem), deadlines).prepare().error;
  };
  EXPECT_THAT(error_of("def reference(W, X, A, B):\n    return W +\n"),
              HasSubstr("the TorchScript reference of lora fails: expected"));
  EXPECT_THAT(error_of("def reference(W, X):\n    return W @ X\n"),
              HasSubstr("the TorchScript reference of lora fails: Expected at most 2 argument(s)"));
  EXPECT_EQ(error_of("def reference(W, X, A, B):\n    return A\n"),
            "the reference of lora does not return one tensor of Y's shape at d = 64");
}

TEST(Worker, WithoutACardTheCudaBackendSaysSo) {
  PrepareRequest request = model_of(test::lora());
  request.backend = Backend::Cuda;
  request.device = 99; // not even where there is one
  WorkerClient client(EVO_WORKER_PROGRAM, request, deadlines);
  EXPECT_THAT(client.prepare().error, HasSubstr("device 99"));
  EXPECT_EQ(client.restarts(), 0);
}

} // namespace
} // namespace evo
