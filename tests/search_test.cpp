#include "population/search.hpp"

#include <csignal>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fitness/problem.hpp"
#include "population/files.hpp"
#include "population/interruption.hpp"
#include "population/recorder.hpp"
#include "population/run_log.hpp"
#include "population/summary.hpp"
#include "tests/support/fake_search.hpp"
#include "tests/support/temporary_folder.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::HasSubstr;

const Genome seed = seed_genome("ab.cu", fake::source(1, 1));

SearchSettings settings(int jobs = 2) {
  return {.generations = 3, .population = 8, .seed = 7, .jobs = jobs};
}

/// Keeps what it is told.
class Listener : public Observer {
public:
  std::vector<std::string> better_ids;
  std::vector<Generation> generations;
  std::function<void(const Individual&)> on_settled = [](const Individual&) {};

  void better(const Individual& individual) override { better_ids.push_back(individual.genome.id); }
  void settled(const Individual& individual) override { on_settled(individual); }
  void generation(const Generation& generation) override { generations.push_back(generation); }
  void judged_again(int, const std::vector<Individual>&) override {}

  std::string log() const {
    std::string text;
    for (const Generation& generation : generations) {
      text += json_lines(events(generation));
    }
    return text;
  }
};

std::string log_of_run(int jobs, std::uint64_t run_seed = 7) {
  fake::World world;
  world.longest_delay = 2ms;
  Listener listener;
  SearchSettings with = settings(jobs);
  with.seed = run_seed;
  Search(with, {seed}, fake::dialect(), world, listener, {}).run();
  return listener.log();
}

TEST(Search, TheLogDependsOnTheSeedAlone) {
  const std::string log = log_of_run(1);
  EXPECT_EQ(log_of_run(2), log);
  EXPECT_EQ(log_of_run(16), log);
  EXPECT_NE(log_of_run(2, 8), log);
}

TEST(Search, GoesFromTheSeedsToTheLastGenerationAndImproves) {
  fake::World world;
  Listener listener;
  Search search(settings(), {seed}, fake::dialect(), world, listener, {});
  search.run();
  ASSERT_EQ(listener.generations.size(), 4U);
  EXPECT_EQ(listener.generations.front().children.size(), 1U);
  for (int number = 1; number <= 3; ++number) {
    const Generation& generation = listener.generations[static_cast<std::size_t>(number)];
    EXPECT_EQ(generation.number, number);
    EXPECT_TRUE(generation.complete);
    ASSERT_EQ(generation.children.size(), 8U);
    for (int slot = 0; slot < 8; ++slot) {
      EXPECT_EQ(generation.children[static_cast<std::size_t>(slot)].slot, slot);
    }
    EXPECT_EQ(generation.survivors.size(), 2U);
  }
  ASSERT_NE(search.archive().best(), nullptr);
  EXPECT_GT(search.archive().best()->fitness.speedup, 2);
  EXPECT_EQ(search.archive().best()->genome.id, listener.better_ids.back());
}

TEST(Search, ChildrenDescendFromGenerationsThatWereComplete) {
  fake::World world;
  Listener listener;
  Search search(settings(), {seed}, fake::dialect(), world, listener, {});
  search.run();
  std::map<std::string, int> born; // id, generation
  for (const Generation& generation : listener.generations) {
    for (const Individual& individual : generation.children) {
      born.try_emplace(individual.genome.id, generation.number);
      for (const std::string& parent : individual.parents) {
        ASSERT_TRUE(born.contains(parent));
        EXPECT_LT(born.at(parent), generation.number);
      }
    }
  }
}

TEST(Search, TheBestNeverDies) {
  fake::World world;
  Listener listener;
  Search(settings(), {seed}, fake::dialect(), world, listener, {}).run();
  double best = 0;
  for (const Generation& generation : listener.generations) {
    double now = 0;
    for (const auto& island : generation.survivors) {
      now = std::max(now, island.front().fitness.speedup);
    }
    EXPECT_GE(now, best);
    best = now;
  }
}

/// Throws where a is 3 or more.
class Bad : public Mutator {
public:
  const About& about() const override { return about_; }
  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    if (fake::value(kernel.source(), "a") >= 3) {
      throw std::runtime_error("a bug of its own");
    }
    return {};
  }

private:
  About about_{"bad", "throws", "a = 1", "a = 2"};
};

TEST(Search, ABadMutatorCostsSlotsAndIsCounted) {
  static const Bad bad;
  Dialect dialect = fake::dialect();
  dialect.mutators.push_back(&bad);
  fake::World world;
  Listener listener;
  Search search(settings(), {seed_genome("ab.cu", fake::source(2, 1))}, dialect, world, listener,
                {});
  search.run();
  ASSERT_EQ(listener.generations.size(), 4U);
  const Failures& failures = search.archive().failures();
  ASSERT_TRUE(failures.contains(Stage::Propose));
  EXPECT_GT(failures.at(Stage::Propose).at(Verdict::Fault), 0);
  EXPECT_THAT(summary(search.archive(), search.lineage(), {seed}, {}),
              HasSubstr("Failures by stage: propose: fault "));
  EXPECT_THAT(listener.log(), HasSubstr("\"failures\":{\"build\":"));
  EXPECT_THAT(listener.log(), HasSubstr("a bug of its own"));
}

TEST(Search, ABadSeedIsOneSentence) {
  for (const auto& [a, words] : {std::pair(4, "ab.cu does not pass (no build: a is 4)"),
                                 std::pair(6, "ab.cu does not pass (wrong answer: a is 6)")}) {
    fake::World world;
    Listener listener;
    Search search(settings(), {seed_genome("ab.cu", fake::source(a, 1))}, fake::dialect(), world,
                  listener, {});
    try {
      search.run();
      FAIL() << "a = " << a;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  }
}

TEST(Search, AnIncumbentIsWhatMustBeBeatenButDoesNotBreed) {
  fake::World world;
  Listener listener;
  Search search(settings(), {seed}, fake::dialect(), world, listener, {});
  const Genome incumbent = seed_genome("earlier.cu", fake::source(9, 1));
  search.run({.incumbent = incumbent});
  EXPECT_THAT(listener.better_ids, testing::ElementsAre(seed.id, incumbent.id));
  EXPECT_EQ(search.archive().best()->genome.id, incumbent.id);
  for (const Individual& child : listener.generations.back().children) {
    EXPECT_EQ(child.genome.seed, "ab.cu");
  }
}

TEST(Search, AnIncumbentThatFailsIsOnlyRecorded) {
  fake::World world;
  Listener listener;
  Search search(settings(), {seed}, fake::dialect(), world, listener, {});
  const Genome incumbent = seed_genome("earlier.cu", fake::source(6, 1));
  search.run({.incumbent = incumbent});
  EXPECT_EQ(search.archive().find(incumbent.id)->verdict(), Verdict::WrongAnswer);
  EXPECT_EQ(listener.generations.size(), 4U);
}

TEST(Search, AStopMidwayEndsWithWhatWasJudged) {
  SearchSettings longer = settings();
  longer.generations = 20;
  fake::World whole;
  Listener ignored;
  Search(longer, {seed}, fake::dialect(), whole, ignored, {}).run();

  fake::World world;
  std::stop_source stop;
  world.on_judge = [&](const Genome&) {
    if (world.judgements == 4) {
      stop.request_stop();
    }
  };
  Listener listener;
  Search search(longer, {seed}, fake::dialect(), world, listener, stop.get_token());
  search.run();
  EXPECT_EQ(world.judgements, 5); // how many generations have begun, duplicates decide
  EXPECT_LT(world.judgements, whole.judgements);
  EXPECT_NE(search.archive().best(), nullptr);
}

/// A run through the real recorder.
struct RecordedRun {
  explicit RecordedRun(fake::World& world, std::stop_token stop = {})
      : snapshot(folder.path(), 7), out(folder.path() / "out.cu"),
        search(settings(), {seed}, fake::dialect(), world, recorder, std::move(stop)) {}
  RecordedRun(const RecordedRun&) = delete;
  ~RecordedRun() { std::fclose(screen); }

  static Problem problem() {
    Problem problem;
    problem.entry = "f";
    problem.output_file = "out.cu";
    problem.inputs = {{.name = "X", .shape = {"d"}, .fan_in = {}}};
    problem.output = {.name = "Y", .shape = {"d"}, .fan_in = {}};
    problem.dim_order = {"d"};
    return problem;
  }

  TemporaryFolder folder;
  Snapshot snapshot;
  fs::path out;
  std::FILE* screen = std::tmpfile();
  Progress progress{{.generations = 3, .population = 8, .budget = {}, .terminal = false}, screen};
  BackendInfo backend;
  Recorder recorder{Exporter(problem(), backend, 7, out), snapshot, progress,
                    Journal(snapshot.folder() / "journal.jsonl", {}), nullptr};
  Search search;
};

TEST(RecordedSearch, ExportsTheBestOfEveryGeneration) {
  fake::World world;
  RecordedRun run(world);
  std::set<std::string> exports;
  world.on_judge = [&](const Genome&) {
    if (fs::exists(run.out)) {
      exports.insert(read_text(run.out));
    }
  };
  run.search.run();
  const Genome& best = run.search.archive().best()->genome;
  EXPECT_THAT(read_text(run.out), HasSubstr(best.source));
  EXPECT_THAT(read_text(run.out), HasSubstr(to_string(best.trail.back())));
  EXPECT_GT(exports.size(), 1U);
  EXPECT_TRUE(fs::exists(run.snapshot.folder() / "gen-0000" / "summary.json"));
  EXPECT_TRUE(fs::exists(run.snapshot.folder() / "gen-0003" / "summary.json"));
  EXPECT_FALSE(fs::exists(run.snapshot.folder() / "gen-0004"));
}

TEST(RecordedSearch, WritesTheExportAgainWhereItWasRemoved) {
  fake::World world;
  RecordedRun run(world);
  world.on_judge = [&](const Genome&) { fs::remove(run.out); };
  run.search.run();
  EXPECT_TRUE(fs::exists(run.out));
}

TEST(RecordedSearch, AnExportThatCannotBeWrittenEndsTheRunInOneSentence) {
  fake::World world;
  RecordedRun run(world);
  fs::create_directory(run.out);
  EXPECT_THROW(run.search.run(), InputError);
}

TEST(RecordedSearch, AfterAStopTheFileHoldsTheBest) {
  fake::World world;
  std::stop_source stop;
  world.on_judge = [&](const Genome&) {
    if (world.judgements == 4) {
      stop.request_stop();
    }
  };
  RecordedRun run(world, stop.get_token());
  run.search.run();
  EXPECT_THAT(read_text(run.out), HasSubstr(run.search.archive().best()->genome.source));
}

TEST(Interruption, StopsOnASignalAndNamesIt) {
  const Interruption interruption({});
  EXPECT_FALSE(interruption.token().stop_requested());
  std::raise(SIGTERM);
  std::raise(SIGTERM); // as timeout sends it: to the process and to its group
  while (!interruption.token().stop_requested()) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(interruption.reason(), "SIGTERM");
}

TEST(Interruption, ASecondSignalEndsAtOnce) {
  EXPECT_EXIT(
      {
        const Interruption interruption({});
        std::raise(SIGINT);
        std::this_thread::sleep_for(400ms);
        std::raise(SIGINT);
      },
      testing::ExitedWithCode(130), "");
}

TEST(Interruption, StopsWhenTheBudgetIsSpent) {
  const Interruption interruption(10ms);
  while (!interruption.token().stop_requested()) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(interruption.reason(), "the time budget");
}

Individual judged(const std::vector<Gene>& trail, double speedup,
                  const std::vector<std::string>& parents) {
  Individual individual;
  individual.genome.id = std::to_string(trail.size()) + "@" + std::to_string(speedup);
  individual.genome.seed = "ab.cu";
  individual.genome.trail = trail;
  individual.parents = parents;
  individual.fitness.verdict = Verdict::Ok;
  individual.fitness.speedup = speedup;
  return individual;
}

TEST(Lineage, TellsTheGainOfEachGeneFromJudgedPrefixes) {
  const Gene a{"m", "a"};
  const Gene b{"m", "b"};
  const Gene c{"m", "c"};
  const Individual root = judged({}, 1, {});
  const Individual first = judged({a}, 2, {root.genome.id});
  const Individual winner = judged({a, b, c}, 5, {first.genome.id});  // two rewrites in a row
  const Individual stranger = judged({a, b}, 100, {first.genome.id}); // no ancestor
  Lineage lineage;
  for (const Individual* each : {&root, &first, &winner, &stranger}) {
    lineage.add(*each);
  }
  EXPECT_THAT(lineage.ancestry(winner.genome.id),
              testing::ElementsAre(winner.genome.id, first.genome.id, root.genome.id));
  const auto steps = lineage.steps(winner.genome.id);
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].gain, 2);
  EXPECT_EQ(steps[1].gain, std::nullopt);
  EXPECT_EQ(steps[2].gain, 2.5);
  EXPECT_EQ(trail_table(steps), "    2.00x  m: a\n        -  m: b\n    2.50x  m: c\n");
}

TEST(Summary, TellsAnEstimateFromAMeasurement) {
  fake::World world;
  Listener listener;
  Search search(settings(), {seed}, fake::dialect(), world, listener, {});
  search.run();
  BackendInfo backend;
  backend.target.arch = "sm_86";
  std::string text = summary(search.archive(), search.lineage(), {seed}, backend);
  EXPECT_THAT(text, HasSubstr("estimated, not measured"));
  EXPECT_THAT(text, HasSubstr("ab.cu: 2.00x"));
  EXPECT_THAT(text, HasSubstr("64: "));
  EXPECT_THAT(text, HasSubstr("more_a: a 2"));
  backend.kind = Backend::Cuda;
  text = summary(search.archive(), search.lineage(), {seed}, backend);
  EXPECT_THAT(text, testing::Not(HasSubstr("estimated")));
}

TEST(Progress, IsOneLineWithEveryKindOfFailure) {
  ProgressState state{.generation = 7,
                      .generations = 40,
                      .population = 32,
                      .best_speedup = 3.416,
                      .tally = {.settled = 32,
                                .built = 28,
                                .verdicts = {{Verdict::Ok, 20},
                                             {Verdict::Duplicate, 3},
                                             {Verdict::NoBuild, 8},
                                             {Verdict::Race, 1}},
                                .failures = {{Stage::Build, {{Verdict::NoBuild, 8}}},
                                             {Stage::Judge, {{Verdict::Race, 1}}}}},
                      .busy_share = 0.874,
                      .left = 200s};
  EXPECT_EQ(progress_line(state),
            "generation 7/40  best 3.42x  built 28  correct 20  duplicate 3  failed 9 (build: no "
            "build 8; judge: race 1)  judge busy 87 %  3:20 left");
  EXPECT_EQ(bar(0.5, 4), "[##..]");
}

} // namespace
} // namespace evo
