#include "population/snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fitness/problem.hpp"
#include "population/files.hpp"
#include "population/run_log.hpp"
#include "tests/support/fake_search.hpp"
#include "tests/support/temporary_folder.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

Individual child(int slot, int a, Verdict verdict) {
  Individual individual;
  individual.genome = seed_genome("ab.cu", fake::source(a, 1));
  individual.genome.trail = {{"more_a", "a " + std::to_string(a)}};
  individual.generation = 7;
  individual.slot = slot;
  individual.parents = {"parent"};
  individual.built = true;
  individual.kernels = {{"f", {.registers = 32, .shared_bytes = 1024, .spill_bytes = 8}}};
  individual.fitness.verdict = verdict;
  if (verdict == Verdict::Ok) {
    individual.fitness.speedup = a;
    individual.fitness.sizes = {{.size = 64, .median_ms = 1.0 / a, .reference_ms = 1}};
    individual.elite = true;
  }
  return individual;
}

Generation seventh() {
  Individual copy = child(2, 3, Verdict::Ok);
  copy.duplicate_of = copy.genome.id;
  copy.elite = false;
  copy.dropped = {{"more_b", "b 2"}};
  Generation generation{
      .number = 7,
      .complete = true,
      .children = {child(0, 3, Verdict::Ok), child(1, 6, Verdict::WrongAnswer), copy},
      .survivors = {{child(0, 3, Verdict::Ok)}, {}}};
  generation.children[1].fitness.detail = "a is 6";
  return generation;
}

std::vector<std::string> names(const std::vector<json>& events) {
  std::vector<std::string> result;
  for (const json& event : events) {
    result.push_back(event.at("event"));
  }
  return result;
}

TEST(Snapshot, HoldsEachIndividualsSourceAndSummary) {
  const TemporaryFolder folder;
  const Snapshot snapshot(folder.path(), 7);
  snapshot.add(seventh(), 1.5, 0.9);
  const fs::path generation = snapshot.folder() / "gen-0007";
  const Individual wrong = child(1, 6, Verdict::WrongAnswer);
  EXPECT_EQ(read_text(generation / (short_id(wrong.genome.id) + ".cu")), fake::source(6, 1));

  const json summary = json::parse(read_text(generation / "summary.json"));
  EXPECT_EQ(summary["generation"], 7);
  EXPECT_EQ(summary["verdicts"], json({{"ok", 1}, {"wrong answer", 1}, {"duplicate", 1}}));
  const json& first = summary["individuals"][0];
  EXPECT_EQ(first["trail"], json({"more_a: a 3"}));
  EXPECT_EQ(first["keeps_order"], true);
  EXPECT_EQ(first["parents"], json({"parent"}));
  EXPECT_EQ(first["kernels"]["f"]["registers"], 32);
  EXPECT_EQ(first["kernels"]["f"]["spill_bytes"], 8);
  EXPECT_EQ(first["verdict"], "ok");
  EXPECT_EQ(first["fitness"]["sizes"][0]["size"], 64);
  EXPECT_EQ(summary["individuals"][1]["verdict"], "wrong answer");
  EXPECT_EQ(summary["individuals"][2]["duplicate_of"], first["id"]);
  EXPECT_EQ(summary["survivors"], json({{first["id"]}, json::array()}));
}

TEST(Snapshot, LatestIsTheNewestRun) {
  const TemporaryFolder folder;
  const Snapshot first(folder.path(), 7);
  const Snapshot second(folder.path(), 7);
  EXPECT_NE(first.folder(), second.folder());
  EXPECT_EQ(fs::canonical(folder.path() / "runs" / "latest"), fs::canonical(second.folder()));
}

TEST(Snapshot, IndividualsComeBackWhole) {
  const TemporaryFolder folder;
  const Snapshot snapshot(folder.path(), 7);
  snapshot.describe({{"seed", 7}});
  snapshot.add(seventh(), 0, 0);
  const Individual expected = child(0, 3, Verdict::Ok);
  const fs::path run = find_run(folder.path(), "latest");
  const Individual loaded = load_individual(run, short_id(expected.genome.id));
  EXPECT_EQ(loaded.genome, expected.genome);
  EXPECT_EQ(loaded.slot, 0);
  EXPECT_EQ(loaded.verdict(), Verdict::Ok);
  EXPECT_EQ(loaded.fitness.speedup, 3);
  EXPECT_EQ(loaded.kernels.at("f").registers, 32);
}

std::string sentence(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Snapshot, SaysWhatItCannotFindOrWrite) {
  const TemporaryFolder folder;
  EXPECT_THAT(sentence([&] { find_run(folder.path(), "nonsense"); }),
              HasSubstr("there is no run nonsense"));
  const Snapshot snapshot(folder.path(), 7);
  snapshot.add(seventh(), 0, 0);
  EXPECT_THAT(sentence([&] { load_individual(snapshot.folder(), "xyz"); }),
              HasSubstr("no individual"));
  EXPECT_THAT(sentence([&] { load_individual(snapshot.folder(), ""); }), HasSubstr("several"));
  write_text(folder.path() / "file", "");
  EXPECT_THAT(sentence([&] { Snapshot(folder.path() / "file", 7); }),
              HasSubstr("choose another --population-dir"));
  fs::create_directories(snapshot.folder() / "gen-0008" / "summary.json");
  Generation eighth = seventh();
  eighth.number = 8;
  EXPECT_THAT(sentence([&] { snapshot.add(eighth, 0, 0); }), HasSubstr("cannot write"));
}

TEST(Files, AFullDiskIsAnInputError) {
  if (!fs::exists("/dev/full")) {
    GTEST_SKIP() << "no /dev/full";
  }
  EXPECT_EQ(sentence([] { write_text("/dev/full", "text"); }),
            "cannot write /dev/full: No space left on device");
}

TEST(Log, TellsEveryEventInSlotOrder) {
  const auto log = events(seventh());
  EXPECT_THAT(names(log), ElementsAre("proposed", "built", "judged", "elite", "exported", // slot 0
                                      "proposed", "built", "failed",                      // slot 1
                                      "proposed", "dropped gene", "built", "duplicate",   // slot 2
                                      "survivor", "generation"));
  EXPECT_EQ(log[7]["verdict"], "wrong answer");
  EXPECT_EQ(log[7]["detail"], "a is 6");
  EXPECT_EQ(log[9]["gene"], "more_b: b 2");
  EXPECT_EQ(log[11]["of"], log[0]["id"]);
}

TEST(Log, KeepsWallClockTimesApart) {
  Generation generation = seventh();
  const std::string before = json_lines(events(generation));
  generation.children[0].timing = {.propose_s = 1, .build_s = 2, .wait_s = 3, .judge_s = 4};
  EXPECT_EQ(json_lines(events(generation)), before);
  const auto times = timings(generation, 5, 0.5);
  EXPECT_EQ(times.front()["judge_s"], 4);
  EXPECT_EQ(times.back()["wall_s"], 5);
}

} // namespace
} // namespace evo
