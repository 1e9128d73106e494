#include "fitness/protocol.hpp"

#include <array>

#include <gmock/gmock.h>

#include "fitness/entry.hpp"

namespace evo {
namespace {

using nlohmann::json;

/// Through the text that travels.
template <typename T> T travelled(const T& value) {
  return json::parse(json(value).dump()).template get<T>();
}

/// A message that travels unchanged also has equal JSON.
template <typename T> void expect_round_trip(const T& value) {
  EXPECT_EQ(json(travelled(value)), json(value));
}

Problem some_problem() {
  Problem problem;
  problem.name = "product";
  problem.entry = "product";
  problem.folder = "/seeds/product";
  problem.seeds = {"/seeds/product/naive.cu"};
  problem.vary = "n";
  problem.dim_order = {"n", "k"};
  problem.fixed_dims = {{"k", 3}};
  problem.sizes = {64, 65};
  problem.inputs = {{.name = "X",
                     .shape = {"n", "k"},
                     .distribution = Distribution::Uniform,
                     .scale = 0.5,
                     .fan_in = "k"}};
  problem.output = {.name = "Y", .shape = {"n"}, .distribution = {}, .scale = 1, .fan_in = {}};
  problem.rtol = 1e-4;
  problem.cases = {{.name = "large", .level = Level::Strict, .sweep = 4, .inputs = problem.inputs}};
  problem.cases[0].inputs[0].modifiers = {Modifier::LargeRow, Modifier::OppositeColumns};
  problem.flops = {{.coefficient = 2, .dims = {"n", "k"}}};
  problem.reference = "def reference(X):\n    return X.sum(1)\n";
  return problem;
}

TEST(Protocol, AProblemArrivesWhole) {
  const Problem problem = travelled(some_problem());
  EXPECT_EQ(problem.seeds, some_problem().seeds);
  EXPECT_EQ(problem.inputs[0].distribution, Distribution::Uniform);
  EXPECT_EQ(problem.inputs[0].scale, 0.5);
  EXPECT_EQ(problem.fixed_dims, some_problem().fixed_dims);
  EXPECT_EQ(problem.reference, some_problem().reference);
  ASSERT_EQ(problem.cases.size(), 1u);
  EXPECT_EQ(problem.cases[0].level, Level::Strict);
  EXPECT_EQ(problem.cases[0].inputs[0].modifiers, some_problem().cases[0].inputs[0].modifiers);
  expect_round_trip(some_problem());
}

TEST(Protocol, RequestsAndResponsesTravel) {
  PrepareRequest prepare;
  prepare.backend = Backend::Cuda;
  prepare.problem = some_problem();
  prepare.input_seed = ~std::uint64_t{0};
  EXPECT_EQ(travelled(prepare).backend, Backend::Cuda);
  EXPECT_EQ(travelled(prepare).input_seed, prepare.input_seed);
  expect_round_trip(prepare);

  PrepareResponse prepared;
  prepared.arch = "sm_90";
  prepared.reference = {{.size = 64, .median_ms = 0, .spread_ms = 0, .reference_ms = 2.5}};
  EXPECT_EQ(travelled(prepared).reference.at(0).reference_ms, 2.5);
  expect_round_trip(prepared);

  JudgeRequest judge;
  judge.library = "/cache/a.so";
  judge.best_ms = {1.25};
  expect_round_trip(judge);

  JudgeResponse judged;
  judged.fitness.verdict = Verdict::OutOfBounds;
  judged.fitness.detail = "wrote past the output";
  LaunchCounts counts;
  counts.kernel = "gemm";
  counts.flops = 1e12;
  judged.counts = {counts};
  EXPECT_EQ(travelled(judged).fitness.verdict, Verdict::OutOfBounds);
  expect_round_trip(judged);
}

TEST(Protocol, AComparisonTravelsWithAndWithoutConditions) {
  CompareRequest request;
  request.contenders = {{.id = "a", .library = "/cache/a.so"},
                        {.id = "b", .library = "/cache/b.so"}};
  request.blocks = 4;
  expect_round_trip(request);

  CompareResponse response;
  response.verdict = Verdict::Ok;
  const TimedBlock block{
      .sizes = {{.size = 64, .contenders_ms = {{1, 2}, {3, 4}}, .reference_ms = {5, 6}}},
      .repetitions = 0,
      .conditions = {}};
  response.blocks = {block, block};
  response.blocks[1].repetitions = 2;
  response.blocks[1].conditions = Conditions{.sm_clock_mhz = 1980, .throttled = {"power cap"}};
  const CompareResponse arrived = travelled(response);
  EXPECT_EQ(arrived.blocks.at(0).sizes.at(0).contenders_ms.at(1).at(1), 4);
  EXPECT_FALSE(arrived.blocks.at(0).conditions);
  EXPECT_EQ(arrived.blocks.at(1).conditions->sm_clock_mhz, 1980);
  expect_round_trip(response);
}

TEST(Protocol, AFailedComparisonHasNoBlocks) {
  CompareResponse response;
  response.verdict = Verdict::Ok;
  response.blocks.resize(3);
  response.fail(Verdict::Suspicious, "too fast");
  EXPECT_EQ(response.verdict, Verdict::Suspicious);
  EXPECT_TRUE(response.blocks.empty());
}

VerifyResponse some_verification() {
  VerifyResponse verified;
  verified.verification.level = Level::Strict;
  verified.verification.headroom = 4;
  verified.verification.cases = {
      {.name = "uniform", .size = 64, .sweep = 0, .binding = true, .figures = {}, .fault = {}},
      {.name = "zeros", .size = 65, .sweep = 0, .binding = false, .figures = {}, .fault = "bad"},
      {.name = "sY = 4", .size = 65, .sweep = 4, .binding = true, .figures = {}, .fault = "worse"}};
  return verified;
}

TEST(Protocol, VerificationsTravelAndConclude) {
  VerifyRequest verify;
  verify.level = Level::Harness;
  verify.sizes = {64};
  expect_round_trip(verify);

  VerifyResponse verified = some_verification();
  verified.conclude("n");
  EXPECT_EQ(verified.verdict, Verdict::WrongAnswer);
  EXPECT_EQ(verified.detail, "in the case \"sY = 4\" at n = 65, worse");
  EXPECT_EQ(travelled(verified).verification.headroom, 4);
  expect_round_trip(verified);
  verified.verification.cases.pop_back();
  verified.conclude("n");
  EXPECT_EQ(verified.verdict, Verdict::Ok);
}

TEST(Protocol, AFitnessNeedHoldNoVerification) {
  Fitness fitness;
  EXPECT_FALSE(travelled(fitness).verification);
  fitness.verification = some_verification().verification;
  EXPECT_EQ(travelled(fitness).verification->cases.size(), 3u);
  expect_round_trip(fitness);
}

TEST(Protocol, ARequestArrivesAsItsKind) {
  JudgeRequest judge;
  judge.id = "a";
  const Request arrived = decode_request(json::parse(encode(judge).dump()));
  EXPECT_EQ(std::get<JudgeRequest>(arrived).id, "a");
  CompareRequest comparison;
  comparison.blocks = 3;
  const Request other = decode_request(json::parse(encode(comparison).dump()));
  EXPECT_EQ(std::get<CompareRequest>(other).blocks, 3);
  EXPECT_TRUE(std::holds_alternative<VerifyRequest>(
      decode_request(json::parse(encode(VerifyRequest{}).dump()))));
  EXPECT_TRUE(std::holds_alternative<PrepareRequest>(decode_request(encode(PrepareRequest()))));
  EXPECT_THROW(decode_request({{"ask", "sing"}}), std::invalid_argument);
  EXPECT_THROW(decode_request(json::object()), json::exception);
}

TEST(Protocol, EveryVerdictTravels) {
  for (const Verdict verdict : all_verdicts) {
    Fitness fitness;
    fitness.verdict = verdict;
    EXPECT_EQ(travelled(fitness).verdict, verdict);
  }
}

TEST(Protocol, GarbageThrowsInsteadOfBecomingAVerdict) {
  json response = JudgeResponse{};
  response["fitness"]["verdict"] = "splendid";
  EXPECT_THROW(response.get<JudgeResponse>(), std::exception);
  EXPECT_THROW(json::object().get<JudgeResponse>(), json::exception);
  EXPECT_THROW(json(3).get<PrepareResponse>(), json::exception);
}

TEST(Fitness, SpeedupIsTheGeometricMean) {
  EXPECT_EQ(geometric_mean_speedup({}), 0);
  SizeResult fast, slow;
  fast.reference_ms = 8;
  fast.median_ms = 1;
  slow.reference_ms = 1;
  slow.median_ms = 2;
  EXPECT_DOUBLE_EQ(geometric_mean_speedup({fast, slow}), 2);
}

extern "C" int two_and_one(const float* a, const float* b, float* output, int n, void* workspace,
                           void* stream) {
  *output = *a + *b + static_cast<float>(n);
  return workspace == output && stream == nullptr ? 7 : 0;
}
extern "C" int eight_and_four(const float* a, const float*, const float*, const float*,
                              const float*, const float*, const float*, const float* h,
                              float* output, int p, int, int, int s, void* workspace,
                              void* stream) {
  *output = *a + *h + static_cast<float>(p + s);
  return workspace == output && stream == nullptr ? 8 : 0;
}
extern "C" std::size_t product_workspace(int n, int k) {
  return std::size_t(n) * std::size_t(k);
}

TEST(Entry, TakesAnyNumberOfInputsAndDims) {
  const float one = 1, two = 2;
  float output = 0;
  EXPECT_EQ(call_entry(reinterpret_cast<void*>(two_and_one), std::array{&one, &two}, &output,
                       std::array{40}, &output, nullptr),
            7);
  EXPECT_EQ(output, 43);
  EXPECT_EQ(call_entry(reinterpret_cast<void*>(eight_and_four),
                       std::array{&one, &one, &one, &one, &one, &one, &one, &two}, &output,
                       std::array{10, 0, 0, -20}, &output, nullptr),
            8);
  EXPECT_EQ(output, -7);
  EXPECT_EQ(
      call_workspace(reinterpret_cast<void*>(product_workspace), std::array{1 << 20, 1 << 12}),
      std::size_t{1} << 32);
}

TEST(Entry, RefusesACountItCannotPass) {
  float output = 0;
  const std::vector<const float*> many(max_inputs + 1, &output);
  EXPECT_THROW(call_entry(nullptr, many, &output, std::array{1}, nullptr, nullptr),
               std::out_of_range);
  EXPECT_THROW(call_workspace(nullptr, {}), std::out_of_range);
}

} // namespace
} // namespace evo
