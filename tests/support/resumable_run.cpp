// resumable_run POPULATION [DELAY_US]: a search in the world of fake_search.hpp through the real
// recorder, which goes on with the newest run of the folder where there is one. At its end the
// folder holds archive.txt. Exit code 2 and one sentence for an InputError.
#include <cstdio>
#include <fstream>

#include <fmt/core.h>

#include "fitness/problem.hpp"
#include "population/recorder.hpp"
#include "population/snapshot.hpp"
#include "tests/support/fake_search.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t run_seed = 7;

Problem problem() {
  Problem result;
  result.entry = "f";
  result.output_file = "out.cu";
  result.inputs = {{.name = "X", .shape = {"d"}, .fan_in = {}}};
  result.output = {.name = "Y", .shape = {"d"}, .fan_in = {}};
  result.dim_order = {"d"};
  return result;
}

Snapshot open_snapshot(const fs::path& population) {
  if (fs::exists(population / "runs" / "latest" / "run.json")) {
    return Snapshot(fs::canonical(population / "runs" / "latest"));
  }
  Snapshot snapshot(population, run_seed);
  snapshot.describe({{"seed", run_seed}});
  return snapshot;
}

void write_archive(const Archive& archive, const fs::path& file) {
  std::ofstream out(file);
  for (const Individual* individual : archive.fittest(1000)) {
    out << individual->genome.id << " " << nlohmann::json(*individual).dump() << "\n";
  }
  for (const auto& [verdict, count] : archive.counts()) {
    out << to_string(verdict) << " " << count << "\n";
  }
}

void run(const fs::path& population, std::chrono::microseconds delay) {
  const Snapshot snapshot = open_snapshot(population);
  std::vector<Past> past = load_past(snapshot.folder());
  snapshot.begin_log_again();
  fake::World world;
  world.longest_delay = delay;
  std::FILE* screen = std::tmpfile();
  Progress progress({.generations = 6, .population = 8, .budget = {}, .terminal = false}, screen);
  Recorder recorder(Exporter(problem(), {}, run_seed, population / "out.cu"), snapshot, progress,
                    Journal(snapshot.folder() / journal_file, {}), nullptr);
  Search search({.generations = 6, .population = 8, .seed = run_seed, .jobs = 2},
                {seed_genome("ab.cu", fake::source(1, 1))}, fake::dialect(), world, recorder, {});
  search.run({.past = std::move(past)});
  write_archive(search.archive(), population / "archive.txt");
  std::fclose(screen);
}

} // namespace
} // namespace evo

int main(int argc, char** argv) {
  try {
    evo::run(argv[1], std::chrono::microseconds(argc > 2 ? std::atoi(argv[2]) : 0));
    return 0;
  } catch (const evo::InputError& error) {
    fmt::print("{}\n", error.what());
    return 2;
  }
}
