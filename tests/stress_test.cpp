#include "population/stress.hpp"

#include <thread>

#include <gmock/gmock.h>

#include "fitness/problem.hpp"
#include "tests/support/fake_search.hpp"

namespace evo {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr const char* launcher = R"(__global__ void scale(float *y) { y[threadIdx.x] *= 2.0f; }

extern "C" size_t scale_it_workspace(int n) { return 0; }
extern "C" cudaError_t scale_it(const float *x, float *y, int n, void *workspace,
                                cudaStream_t queue) {
  scale<<<1, n, 0, queue>>>(y);
  return cudaGetLastError();
}
)";

/// Judges what fake::World does, and knows what sabotage looks like.
class Fragile : public fake::World {
public:
  std::chrono::milliseconds cost_of_a_restart{0};

  std::variant<Built, BuildFailure> build(const Genome& genome, std::stop_token stop,
                                          Gates gates) const override {
    auto result = World::build(genome, stop, gates);
    if (auto* built = std::get_if<Built>(&result)) {
      built->binary_digest = genome.id;
    }
    return result;
  }

  Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                  std::stop_token stop) override {
    const auto fails = [&](Verdict verdict) {
      std::this_thread::sleep_for(cost_of_a_restart);
      Judgement judgement;
      judgement.fitness.verdict = verdict;
      return judgement;
    };
    const auto contains = [&](const char* text) {
      return genome.source.find(text) != std::string::npos;
    };
    if (contains("nullptr) = 0")) {
      return fails(Verdict::Crash);
    }
    if (contains("trap;")) {
      return fails(Verdict::LaunchError);
    }
    if (contains("while (now != 0)")) {
      std::this_thread::sleep_for(300ms);
      return fails(Verdict::Hang);
    }
    std::this_thread::sleep_for(2ms);
    return World::judge(genome, built, incumbent, stop);
  }
};

std::vector<Genome> seeds() {
  return {seed_genome("seed.cu", fake::source(0, 0) + launcher)};
}

StressReport stressed(Fragile& world, int candidates) {
  StressSettings settings;
  settings.candidates = candidates;
  settings.seed = 3;
  settings.jobs = 2;
  return stress(settings, seeds(), fake::dialect(), "scale_it", world, {});
}

TEST(Stress, ReplacesEveryTenthAndFindsTheSameWinner) {
  Fragile world;
  const StressReport report = stressed(world, 30);
  EXPECT_EQ(report.undisturbed.candidates, 30);
  EXPECT_EQ(report.disturbed.candidates, 30);
  EXPECT_THAT(report.disturbed.replaced,
              UnorderedElementsAre(Pair(Verdict::Crash, 1), Pair(Verdict::LaunchError, 1),
                                   Pair(Verdict::Hang, 1)));
  EXPECT_TRUE(report.same_winner());
  EXPECT_TRUE(report.all_replaced_failed());
  EXPECT_GE(report.disturbed.hung_seconds, 0.3) << "the deadline is not told apart";
  EXPECT_THAT(describe(report), HasSubstr("the same winner"));
}

TEST(Stress, ARestartThatCostsMuchFails) {
  Fragile world;
  world.cost_of_a_restart = 200ms;
  const StressReport report = stressed(world, 20);
  EXPECT_GT(report.loss(), 0.15);
  EXPECT_FALSE(report.passed());
  EXPECT_THAT(describe(report), HasSubstr("FAILED"));
}

TEST(Stress, AReplacedOneThatPassesFails) {
  StressReport report;
  report.disturbed.replaced = {{Verdict::Crash, 2}, {Verdict::Ok, 1}};
  EXPECT_FALSE(report.all_replaced_failed());
  report.disturbed.replaced = {{Verdict::NoBuild, 3}};
  EXPECT_FALSE(report.all_replaced_failed()) << "nothing was disturbed";
}

TEST(Stress, RefusesWhatItCannotDo) {
  Fragile world;
  EXPECT_THROW(stressed(world, 9), InputError);
  EXPECT_THROW(stressed(world, 120), InputError) << "there are not that many";
  EXPECT_THROW(sabotaged(seeds()[0], Sabotage::Crash, "other"), InputError);
}

TEST(Sabotage, StandsAtTheBeginningOfTheEntry) {
  const std::string hanging = sabotaged(seeds()[0], Sabotage::Hang, "scale_it").source;
  EXPECT_THAT(hanging, HasSubstr("queue) {\n  disturb<<<1, 1, 0, queue>>>();\n  scale<<<"));
  EXPECT_LT(hanging.find("while (now != 0)"), hanging.find("extern \"C\" cudaError_t"));
  const Genome crashing = sabotaged(seeds()[0], Sabotage::Crash, "scale_it");
  EXPECT_THAT(crashing.source, HasSubstr("queue) {\n  *static_cast<volatile int *>(nullptr) = 0;"));
  EXPECT_NE(crashing.id, seeds()[0].id);
}

} // namespace
} // namespace evo
