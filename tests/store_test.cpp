#include "population/store.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <thread>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fitness/problem.hpp"
#include "population/disk_limit.hpp"
#include "population/files.hpp"
#include "population/founders.hpp"
#include "population/recorder.hpp"
#include "population/remembering_evaluator.hpp"
#include "population/run_log.hpp"
#include "population/summary.hpp"
#include "tests/support/fake_search.hpp"
#include "tests/support/nobody.hpp"
#include "tests/support/temporary_folder.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

Context context(const std::string& card = "H200", int driver = 13) {
  return {.subject = {{"card", card}}, .terms = {{"driver", driver}}};
}

Individual individual(int a, int b = 1) {
  Individual result;
  result.genome = seed_genome("ab.cu", fake::source(a, b));
  result.genome.trail = {{"more_a", "a " + std::to_string(a)}};
  result.built = true;
  result.binary = "binary " + std::to_string(a);
  result.kernels = {{"f", {.registers = 32, .shared_bytes = 0, .spill_bytes = 0}}};
  result.fitness = {.verdict = Verdict::Ok,
                    .detail = {},
                    .measured = true,
                    .sizes = {{.size = 64, .median_ms = 1.0 / a, .reference_ms = 1}},
                    .speedup = static_cast<double>(a)};
  return result;
}

std::string sentence(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

class StoreTest : public testing::Test {
protected:
  TemporaryFolder folder_;
  fs::path file_ = folder_.path() / "sub" / "store.sqlite";
};

TEST_F(StoreTest, KeepsVerdictsAcrossConnections) {
  const Individual five = individual(5);
  Store(file_, context()).put(five);
  const Store store(file_, context());
  const auto found = store.find(five.genome.id);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->genome.trail, five.genome.trail);
  EXPECT_EQ(found->binary, five.binary);
  EXPECT_EQ(found->fitness.speedup, 5);
  EXPECT_EQ(found->kernels.at("f").registers, 32);
  EXPECT_FALSE(store.find("unknown"));
  EXPECT_EQ(store.size(), 1U);
}

TEST_F(StoreTest, VerdictsHoldInTheirContextAlone) {
  const Individual five = individual(5);
  Store(file_, context()).put(five);
  for (const Context& other : {context("A100"), context("H200", 12)}) {
    EXPECT_FALSE(Store(file_, other).find(five.genome.id));
  }
  EXPECT_EQ(Store(file_, context("H200", 12)).fittest(9).size(), 1U) << "worth a try";
  EXPECT_EQ(Store(file_, context("A100")).fittest(9).size(), 0U);
}

TEST_F(StoreTest, EveryTermMakesAContext) {
  Problem problem;
  problem.name = "lora";
  problem.sizes = {64};
  BackendInfo backend;
  backend.card = "H200";
  const auto of = [](const Problem& p, const BackendInfo& b, Level level = Level::Default,
                     std::uint64_t contents = 1, bool sanitizer = true) {
    return context_of(p, b, level, contents, sanitizer);
  };
  const Context first = of(problem, backend);
  EXPECT_EQ(of(problem, backend), first);
  EXPECT_EQ(differences(first, first), "");
  for (std::string BackendInfo::* member :
       {&BackendInfo::card, &BackendInfo::driver, &BackendInfo::toolkit, &BackendInfo::build_line,
        &BackendInfo::reference_precision}) {
    BackendInfo other = backend;
    other.*member = "other";
    EXPECT_FALSE(of(problem, other) == first);
  }
  Problem tighter = problem;
  tighter.rtol = 1e-6;
  Problem larger = problem;
  larger.sizes = {128};
  EXPECT_FALSE(of(tighter, backend) == first);
  EXPECT_FALSE(of(larger, backend) == first);
  EXPECT_FALSE(of(problem, backend, Level::Strict) == first);
  EXPECT_FALSE(of(problem, backend, Level::Default, 2) == first);
  EXPECT_FALSE(of(problem, backend, Level::Default, 1, false) == first);
  EXPECT_EQ(differences(of(problem, backend, Level::Strict), first),
            "level strict instead of default");
}

TEST_F(StoreTest, ListsTheFittestFirstAndNoFailures) {
  Store store(file_, context());
  for (const int a : {3, 8, 5}) {
    store.put(individual(a));
  }
  Individual wrong = individual(9);
  wrong.fitness = failed(Verdict::WrongAnswer, "\xff is no UTF-8");
  store.put(wrong);
  EXPECT_EQ(store.find(wrong.genome.id)->fitness.verdict, Verdict::WrongAnswer);
  const auto fittest = store.fittest(2);
  ASSERT_EQ(fittest.size(), 2U);
  EXPECT_EQ(fittest[0].fitness.speedup, 8);
  EXPECT_EQ(fittest[1].fitness.speedup, 5);
}

TEST_F(StoreTest, OpensAHundredThousandVerdictsWithinASecond) {
  {
    Store store(file_, context());
    store.put(individual(5));
    Database database(file_, 1000);
    database.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
                     "99999) INSERT INTO verdicts SELECT context, printf('%016x', i), i % 1000 / "
                     "1000.0, individual FROM n, verdicts");
  }
  const auto start = std::chrono::steady_clock::now();
  const Store store(file_, context());
  EXPECT_TRUE(store.find(individual(5).genome.id));
  EXPECT_EQ(store.fittest(100).size(), 100U);
  EXPECT_EQ(store.size(), 100000U);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", std::to_string(seconds.count()));
  EXPECT_LT(seconds.count(), 1);
}

TEST_F(StoreTest, TwoEnginesShareIt) {
  const auto fill = [&](int b) {
    Store store(file_, context());
    for (int a = 0; a < 200; ++a) {
      store.put(individual(1 + a, b));
    }
  };
  std::thread first(fill, 1);
  std::thread second(fill, 2);
  first.join();
  second.join();
  EXPECT_EQ(Store(file_, context()).size(), 400U);
}

TEST_F(StoreTest, SaysWhoHoldsIt) {
  const Store store(file_, context());
  Database other(file_, 0);
  other.execute("BEGIN EXCLUSIVE");
  EXPECT_THAT(sentence([&] { Store(file_, context(), std::chrono::milliseconds(10)); }),
              AllOf(HasSubstr("cannot open the store"), HasSubstr("another program holds it")));
}

TEST_F(StoreTest, RefusesWhatIsNoStore) {
  write_text(folder_.path() / "text", std::string(5000, 'x'));
  EXPECT_THAT(sentence([&] { Store(folder_.path() / "text", context()); }),
              HasSubstr("it is damaged, or no store"));
  EXPECT_EQ(read_text(folder_.path() / "text"), std::string(5000, 'x'));
  EXPECT_THAT(sentence([&] { Store(folder_.path() / "text" / "store", context()); }),
              HasSubstr("name another with --store"));
  Store(file_, context());
  Database(file_, 0).execute("PRAGMA user_version = 99");
  EXPECT_THAT(sentence([&] { Store(file_, context()); }), HasSubstr("another version of evo"));
}

TEST_F(StoreTest, RefusesAFolderThatIsReadOnly) {
  ASSERT_EQ(chmod(folder_.path().c_str(), 0555), 0);
  const Nobody nobody;
  EXPECT_THAT(sentence([&] { Store(folder_.path() / "store.sqlite", context()); }),
              HasSubstr("cannot be made or changed there; name another with --store"));
}

TEST_F(StoreTest, LosesNothingOnAFullDisk) {
  Store store(file_, context());
  store.put(individual(5));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{.rlim_cur = 1 << 16, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  std::string said = "no error";
  int written = 0;
  for (int a = 6; a < 200 && said == "no error"; ++a) {
    said = sentence([&] { store.put(individual(a)); });
    written += said == "no error" ? 1 : 0;
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(said, HasSubstr("cannot write the store"));
  EXPECT_EQ(store.size(), static_cast<std::size_t>(1 + written));
  store.put(individual(200));
  EXPECT_EQ(Store(file_, context()).size(), static_cast<std::size_t>(2 + written));
}

/// What is told at one generation's end, and then forgotten.
class Counter : public Observer {
public:
  explicit Counter(Store& store) : store_(store) {}
  std::vector<Generation> generations;

  void better(const Individual& individual) override { best = individual.genome.id; }
  void settled(const Individual& each) override {
    known += each.known ? 1 : 0;
    if (!each.known && each.duplicate_of != each.genome.id) {
      store_.put(each);
    }
  }
  void generation(const Generation& generation) override { generations.push_back(generation); }
  void judged_again(int, const std::vector<Individual>&) override {}

  int known = 0;
  std::string best;

private:
  Store& store_;
};

const Genome seed = seed_genome("ab.cu", fake::source(1, 1));

/// A run that begins with what the store knows.
struct StoredRun {
  explicit StoredRun(const fs::path& file, std::uint64_t run_seed = 7)
      : store(file, context()), known_before(store.size()), observer(store),
        evaluator(world, {.store = store}),
        search({.generations = 3, .population = 8, .seed = run_seed, .jobs = 2}, {seed},
               fake::dialect(), evaluator, observer, {}) {
    search.run({.founders = founders(store)});
  }

  fake::World world;
  Store store;
  std::size_t known_before;
  Counter observer;
  RememberingEvaluator evaluator;
  Search search;
};

TEST_F(StoreTest, ASecondRunStartsFromTheFirstAndJudgesNothingTwice) {
  const StoredRun first(file_);
  const StoredRun second(file_);
  ASSERT_NE(first.search.archive().best(), nullptr);
  const double best = first.search.archive().best()->fitness.speedup;
  const std::vector<Individual>& initial = second.observer.generations.front().children;
  EXPECT_THAT(initial, Contains(testing::Field(&Individual::genome,
                                               testing::Field(&Genome::id, first.observer.best))));
  EXPECT_GT(second.observer.known, 0);
  EXPECT_GE(second.search.archive().best()->fitness.speedup, best);

  // What was judged again might have been faster than the best of its moment.
  double incumbent = 0;
  for (const Generation& generation : second.observer.generations) {
    for (const Individual& each : generation.children) {
      if (each.viable() && !each.genome.trail.empty() &&
          first.world.judged.contains(each.genome.id) &&
          second.world.judged.contains(each.genome.id)) {
        EXPECT_GT(each.fitness.speedup, incumbent);
      }
      incumbent = each.elite ? each.fitness.speedup : incumbent;
    }
  }
}

TEST_F(StoreTest, TheBestIsAlwaysJudgedInThisRun) {
  const StoredRun first(file_);
  const StoredRun second(file_);
  for (const Generation& generation : second.observer.generations) {
    for (const Individual& each : generation.children) {
      EXPECT_FALSE(each.elite && each.known);
    }
  }
  EXPECT_TRUE(second.world.judged.contains(second.search.archive().best()->genome.id));
}

TEST_F(StoreTest, KnownVerdictsAreShown) {
  const StoredRun first(file_);
  const StoredRun second(file_);
  EXPECT_EQ(second.search.archive().known(), second.observer.known);
  EXPECT_THAT(summary(second.search.archive(), second.search.lineage(), {seed}, {}),
              HasSubstr(fmt::format("Known from earlier runs, and not judged again: {}",
                                    second.observer.known)));
  std::string log;
  for (const Generation& generation : second.observer.generations) {
    log += json_lines(events(generation));
  }
  EXPECT_THAT(log, HasSubstr("\"event\":\"known\""));
  ProgressState state;
  state.tally.known = 3;
  EXPECT_THAT(progress_line(state), HasSubstr("known 3"));
}

/// Says of everything that it is half as fast as it was.
class SlowerDay : public fake::World {
public:
  Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                  std::stop_token stop) override {
    EXPECT_FALSE(built.binary_digest.empty());
    Judgement judgement = World::judge(genome, built, incumbent, stop);
    judgement.fitness.speedup /= 2;
    for (SizeResult& size : judgement.fitness.sizes) {
      size.median_ms *= 2;
      size.reference_ms *= 3;
    }
    judgement.fitness.measured = true;
    return judgement;
  }
};

class Remembering : public StoreTest {
protected:
  Judgement judge(const Individual& candidate, double best) {
    Incumbent incumbent;
    incumbent.fitness.verdict = Verdict::Ok;
    incumbent.fitness.speedup = best;
    incumbent.fitness.sizes = {{.size = 64, .median_ms = 4 / best, .reference_ms = 4}};
    RememberingEvaluator evaluator(world_, {.store = store_});
    auto built = evaluator.build(candidate.genome, {}, Gates::All);
    return evaluator.judge(candidate.genome, std::get<Built>(built), &incumbent, {});
  }

  SlowerDay world_;
  Store store_{file_, context()};
};

TEST_F(Remembering, TellsKnownTimesInUnitsOfThisRunsReference) {
  store_.put(individual(5));
  store_.put(individual(8));
  const Judgement judgement = judge(individual(5), 6);
  EXPECT_TRUE(judgement.known);
  EXPECT_FALSE(judgement.confirmed);
  EXPECT_EQ(judgement.fitness.speedup, 5);
  EXPECT_DOUBLE_EQ(judgement.fitness.sizes[0].reference_ms, 4);
  EXPECT_DOUBLE_EQ(judgement.fitness.sizes[0].median_ms, 4.0 / 5);
  EXPECT_EQ(world_.builds, 0);
  EXPECT_EQ(world_.judgements, 0);
}

TEST_F(Remembering, JudgesAgainWhatMayBeFasterWithinTheNoiseOfSessions) {
  store_.put(individual(5));
  store_.put(individual(8));
  const Judgement again = judge(individual(5), 5.6);
  EXPECT_FALSE(again.known);
  EXPECT_EQ(again.fitness.speedup, 3) << "as measured now";
  ASSERT_TRUE(again.built) << "for it was not built before it was judged";
  EXPECT_EQ(again.built->binary_digest, "5/0");
}

TEST_F(Remembering, TakesFailuresForKnownThatTellOfTheKernel) {
  const auto store = [&](Verdict verdict) {
    Individual failing = individual(5);
    failing.fitness = failed(verdict, "as it was");
    store_.put(failing);
    return failing;
  };
  EXPECT_TRUE(judge(store(Verdict::WrongAnswer), 1).known);
  EXPECT_TRUE(judge(store(Verdict::Race), 1).known);
  for (const Verdict verdict : {Verdict::Crash, Verdict::Hang, Verdict::LaunchError}) {
    EXPECT_FALSE(judge(store(verdict), 1).known);
  }
  Individual unbuilt = store(Verdict::NoBuild);
  unbuilt.built = false;
  store_.put(unbuilt);
  const auto result =
      RememberingEvaluator(world_, {.store = store_}).build(unbuilt.genome, {}, Gates::All);
  const auto& failure = std::get<BuildFailure>(result);
  EXPECT_TRUE(failure.known);
  EXPECT_EQ(failure.detail, "as it was");
}

TEST_F(Remembering, AlwaysJudgesWhatTheUserNames) {
  Individual named = individual(5);
  named.genome.trail.clear();
  store_.put(named);
  EXPECT_FALSE(judge(named, 100).known);
}

/// Fails the incumbent beside every challenger.
class Dethroning : public fake::World {
public:
  Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                  std::stop_token stop) override {
    Judgement judgement = World::judge(genome, built, incumbent, stop);
    judgement.incumbent = failed(Verdict::WrongAnswer, "now and then");
    return judgement;
  }
};

TEST_F(Remembering, ForgetsAnIncumbentThatFailed) {
  store_.put(individual(5));
  Dethroning world;
  RememberingEvaluator evaluator(world, {.store = store_});
  Incumbent incumbent;
  incumbent.id = individual(5).genome.id;
  evaluator.judge(individual(7).genome, {}, &incumbent, {});
  EXPECT_FALSE(store_.find(incumbent.id));
}

class DiskLimitTest : public testing::Test {
protected:
  fs::path file(const std::string& name, std::chrono::hours age) {
    const fs::path path = folder_.path() / "runs" / name;
    fs::create_directories(path.parent_path());
    write_text(path, std::string(1000, 'x'));
    const auto time = fs::file_time_type::clock::now() - age;
    fs::last_write_time(path, time);
    fs::last_write_time(path.parent_path(), time);
    return path;
  }
  std::string keep(std::uintmax_t bytes) {
    return make_room({.population = folder_.path(),
                      .store = folder_.path() / "store.sqlite",
                      .current = folder_.path() / "runs" / "current",
                      .bytes = bytes});
  }

  TemporaryFolder folder_;
};

TEST_F(DiskLimitTest, TheOldestRunsGoFirstThenBuildsAndNeverTheCurrentRun) {
  using std::chrono::hours;
  const fs::path current = file("current/run.json", hours(99));
  const fs::path oldest = file("oldest/run.json", hours(50));
  const fs::path older = file("older/run.json", hours(40));
  const fs::path unused = file(".cache/unused.so", hours(2));
  const fs::path used = file(".cache/used.so", hours(0));
  EXPECT_EQ(keep(5000), "");
  EXPECT_TRUE(fs::exists(oldest));
  EXPECT_EQ(keep(4500), "");
  EXPECT_FALSE(fs::exists(oldest.parent_path()));
  EXPECT_TRUE(fs::exists(older));
  EXPECT_EQ(keep(2500), "");
  EXPECT_FALSE(fs::exists(older.parent_path()));
  EXPECT_FALSE(fs::exists(unused));
  EXPECT_THAT(keep(10), HasSubstr("more than --disk-limit allows"));
  EXPECT_TRUE(fs::exists(current));
  EXPECT_TRUE(fs::exists(used));
}

} // namespace
} // namespace evo
