// The built program judges the whole zoo that runs without a card.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fitness/builder.hpp"
#include "fitness/problem.hpp"
#include "fitness/process.hpp"
#include "population/files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace evo {
namespace {

TEST(EvoSelftest, CatchesEveryCheatOnTheModelAndAccusesNoGoodKernel) {
  try {
    Builder::find_nvcc();
  } catch (const InputError& error) {
    GTEST_SKIP() << error.what();
  }
  const TemporaryFolder folder;
  ProcessOptions options;
  options.directory = folder.path();
  options.deadline = std::chrono::minutes(10);
  const ProcessResult run = run_process(
      {EVO_PROGRAM, "selftest", "--backend", "model", "--json", "selftest.json"}, options);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const auto record = nlohmann::json::parse(read_text(folder.path() / "selftest.json"));
  EXPECT_EQ(record.at("caught"), record.at("specimens"));
  EXPECT_GE(record.at("specimens").get<int>(), 30);
  EXPECT_EQ(record.at("good"), 12);
}

} // namespace
} // namespace evo
