// random_trails [TRAIL...]: random walks of rewrites from the seeds of the LoRA product, and from
// beginnings of the trails <name>_<seed>.trail. Every kernel on the way must parse; some are run on
// the CPU and must compute what the seed does; some are built with nvcc. What fails is shrunk to
// the shortest trail that does and left in a file for tests/trails/. Prints counts, and how many
// trails each mutator is in and what it costs, at the end or a first signal. Exit code: 0; 1 when
// anything failed.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "fitness/problem.hpp"
#include "population/clock.hpp"
#include "population/files.hpp"
#include "population/interruption.hpp"
#include "population/trail_file.hpp"
#include "population/variation.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/trails.hpp"

namespace evo::test {
namespace {

struct Settings {
  int trails = 40;
  int runs = 4;
  int builds = 1;
  int steps = 16;   // of a walk; its beginnings are trails as well
  int siblings = 3; // of each kernel on the way: the same mutator's other proposals, ends of trails
  int largest = 300;
  std::uint64_t seed = 1;
  std::optional<std::chrono::duration<double>> budget;
  std::string target = "sm_86";
  std::filesystem::path out = "trails";
  std::vector<std::filesystem::path> starts;
};

double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/// Another mutator, with what its proposals cost.
class Timed : public Mutator {
public:
  Timed(const Mutator& mutator, const Genome& asked) : mutator_(mutator), asked_(asked) {}

  const About& about() const override { return mutator_.about(); }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    const double start = processor_ms();
    std::vector<Rewrite> proposals = mutator_.propose(kernel);
    const double ms = processor_ms() - start;
    ++calls;
    total_ms += ms;
    if (ms > worst_ms) {
      worst_ms = ms;
      worst = asked_;
    }
    return proposals;
  }

  std::vector<Gene> preparation(const Kernel& kernel) const override {
    return mutator_.preparation(kernel);
  }

  int trails = 0; // it occurs in
  mutable int calls = 0;
  mutable double total_ms = 0;
  mutable double worst_ms = 0;
  mutable Genome worst;

private:
  const Mutator& mutator_;
  const Genome& asked_; // the genome that the walk is at
};

/// Where walks begin: anywhere on a trail.
struct Start {
  Genome seed;
  std::vector<Gene> trail;
};

/// Counts of one kind of check.
struct Tally {
  int asked = 0;
  int failed = 0;
};

class Trails {
public:
  explicit Trails(const Settings& settings)
      : settings_(settings), interruption_(settings.budget), target_(target_of(settings.target)) {
    for (const Mutator* mutator : mutators()) {
      timed_.emplace_back(*mutator, at_);
      dialect_.mutators.push_back(&timed_.back());
    }
    dialect_.target = target_;
    if (settings.builds > 0) {
      builder_.emplace(BuildOptions{Builder::find_nvcc(), settings.target, settings.out / "build"});
    }
    for (const char* name : {"naive", "tiled"}) {
      starts_.push_back({lora_seed(name), {}});
    }
    for (const std::filesystem::path& trail : settings.starts) {
      starts_.push_back({seed_of(trail), load_trail(trail)});
    }
    std::filesystem::create_directories(settings.out);
  }

  void walk_all() {
    for (int walk = 0; wanted(); ++walk) {
      const Start& start = starts_[static_cast<std::size_t>(walk) % starts_.size()];
      Random random = random_for(settings_.seed, 1, walk);
      try {
        walk_from(start, random);
      } catch (const std::exception& error) {
        report_exception(start.seed, error.what());
      }
    }
  }

  /// Whether all is well.
  bool print_report() {
    std::ranges::sort(lengths_);
    if (const std::string reason = interruption_.reason(); !reason.empty()) {
      fmt::print("stopped by {}\n", reason);
    }
    fmt::print("{} trails, {:.0f} s; median length {}, longest {}\n", lengths_.size(),
               seconds_since(start_), lengths_.empty() ? 0 : lengths_[lengths_.size() / 2],
               lengths_.empty() ? 0 : lengths_.back());
    fmt::print("parsed {} of {}, replayed {} of {}\n", sources_.asked - sources_.failed,
               sources_.asked, replays_.asked - replays_.failed, replays_.asked);
    fmt::print("ran and agreed on the CPU: {} of {} ({} bit by bit on reals)\n",
               runs_.asked - runs_.failed, runs_.asked, in_order_);
    fmt::print("compiled with nvcc: {} of {}\n", builds_.asked - builds_.failed, builds_.asked);
    for (const auto& [reason, count] : refusals_) {
      fmt::print("  {} x {}\n", count, reason);
    }
    fmt::print("exceptions: {}\n", exceptions_);
    print_mutators();
    return sources_.failed + replays_.failed + runs_.failed + builds_.failed + exceptions_ == 0;
  }

private:
  static Target target_of(const std::string& arch) {
    const auto target = Target::find(arch);
    return target ? *target : throw InputError("there is no target " + arch);
  }

  void walk_from(const Start& start, Random& random) {
    const auto& [seed, trail] = start;
    const auto length = static_cast<std::ptrdiff_t>(pick(random, trail.size() + 1));
    at(follow(seed, {trail.begin(), trail.begin() + length}, dialect_).genome);
    random_walk(at_, settings_.steps, dialect_, random, [&](const Genome& genome) {
      const Genome parent = at_;
      for (const Genome& sibling : siblings(parent, genome.trail.back().mutator, random)) {
        passes_once(seed, sibling);
      }
      return passes_once(seed, genome) && wanted();
    });
  }

  /// Proposing costs most, so that several of the proposals are taken.
  std::vector<Genome> siblings(const Genome& parent, const std::string& name,
                               Random& random) const {
    const Mutator& mutator = *find_mutator(name, dialect_.mutators);
    const bool ready = !dialect_.proposals(parent, mutator)->empty();
    const Genome from = ready ? parent : prepared(parent, mutator, dialect_);
    const auto proposals = dialect_.proposals(from, mutator);
    std::vector<Genome> result;
    for (int i = 0; i < settings_.siblings; ++i) {
      result.push_back(child(from, mutator, (*proposals)[pick(random, proposals->size())]));
    }
    return result;
  }

  bool passes_once(const Genome& seed, const Genome& genome) {
    at(genome);
    return !wanted() || !seen_.insert(genome.id).second || passes(seed, genome);
  }

  bool wanted() const {
    return sources_.asked < settings_.trails && !interruption_.token().stop_requested();
  }

  /// Remembered in a file as well, which tells what a crash was about.
  void at(const Genome& genome) {
    at_ = genome;
    write(genome, "now", fmt::format("what trail {} came from", sources_.asked + 1), "");
  }

  /// Whether one more is needed for `count` of them, spread over all trails.
  bool is_due(const Tally& tally, int count) const {
    return std::int64_t{tally.asked} * settings_.trails < std::int64_t{sources_.asked} * count;
  }

  bool passes(const Genome& seed, const Genome& genome) {
    ++sources_.asked;
    count(genome.trail);
    const Check source = [&](const Genome& g) { return source_fault(g, target_); };
    if (!passes(sources_, "source", seed, genome, source)) {
      return false;
    }
    return (!is_due(runs_, settings_.runs) || runs(seed, genome)) &&
           (!is_due(builds_, settings_.builds) || builds(seed, genome));
  }

  void count(const std::vector<Gene>& trail) {
    lengths_.push_back(trail.size());
    for (Timed& mutator : timed_) {
      mutator.trails += std::ranges::count(trail, mutator.about().name, &Gene::mutator) > 0 ? 1 : 0;
    }
  }

  bool runs(const Genome& seed, const Genome& genome) {
    const auto sizes = [&](const Genome& g) {
      std::set<int> small;
      for (const int size : sizes_around_the_tile(g, target_)) {
        small.insert(std::min(size, settings_.largest - size % 2)); // odd ones stay so
      }
      return std::vector(small.begin(), small.end());
    };
    ++runs_.asked;
    in_order_ += genome.keeps_order ? 1 : 0;
    return passes(runs_, "values", seed, genome,
                  [&](const Genome& g) { return value_fault(seed, g, sizes(g), target_); });
  }

  bool builds(const Genome& seed, const Genome& genome) {
    ++replays_.asked;
    const Check replay = [&](const Genome& g) {
      return replay_fault(seed, g, mutators(), target_);
    };
    if (!passes(replays_, "replay", seed, genome, replay)) {
      return false;
    }
    ++builds_.asked;
    const Check build = [&](const Genome& g) { return build_fault(g, *builder_); };
    if (const std::string reason = build(genome); !reason.empty()) {
      ++refusals_[reason];
    }
    return passes(builds_, "build", seed, genome, build);
  }

  bool passes(Tally& tally, const char* kind, const Genome& seed, const Genome& genome,
              const Check& fault) {
    if (const std::string reason = fault(genome); !reason.empty()) {
      ++tally.failed;
      keep(shrunk(seed, genome, dialect_, fault), kind, reason);
      return false;
    }
    return true;
  }

  void report_exception(const Genome& seed, const std::string& reason) {
    ++exceptions_;
    const Genome parent = at_;
    for (const Mutator* mutator : dialect_.mutators) {
      const Check fault = [&](const Genome& g) { return proposal_fault(g, *mutator, dialect_); };
      if (!fault(parent).empty()) {
        keep(shrunk(seed, parent, dialect_, fault), "exception", reason,
             fmt::format("{}: anything\n", mutator->about().name));
        return;
      }
    }
    keep(parent, "exception", reason + " (when applied)");
  }

  void keep(const Genome& genome, const char* kind, const std::string& reason,
            const std::string& more = "") const {
    const auto name = fmt::format("{}_{}", kind, short_id(genome.id));
    fmt::print("{}\n", write(genome, name, reason, more));
    std::fflush(stdout);
  }

  std::string write(const Genome& genome, const std::string& name, std::string reason,
                    const std::string& more) const {
    std::ranges::replace(reason, '\n', ' ');
    std::string text = fmt::format("# {}: {}\n", genome.seed, reason);
    for (const Gene& gene : genome.trail) {
      text += to_string(gene) + "\n";
    }
    text += more;
    const std::string seed = std::filesystem::path(genome.seed).stem();
    write_text(settings_.out / fmt::format("{}_{}.trail", name, seed), text);
    return text;
  }

  void print_mutators() const {
    fmt::print("{:<20} {:>7} {:>7} {:>10} {:>10}  processor milliseconds of a proposal\n",
               "mutator", "trails", "calls", "mean", "most");
    for (const Timed& timed : timed_) {
      fmt::print("{:<20} {:>7} {:>7} {:>10.1f} {:>10.1f}\n", timed.about().name, timed.trails,
                 timed.calls, timed.total_ms / std::max(1, timed.calls), timed.worst_ms);
      write(timed.worst, fmt::format("slowest_{}", timed.about().name),
            fmt::format("{} takes {:.0f} ms to propose", timed.about().name, timed.worst_ms),
            fmt::format("{}: anything\n", timed.about().name));
    }
  }

  Settings settings_;
  Interruption interruption_;
  Target target_;
  std::deque<Timed> timed_;
  Dialect dialect_;
  std::optional<Builder> builder_;
  std::vector<Start> starts_;
  std::set<std::string> seen_;
  Genome at_;
  Clock::time_point start_ = Clock::now();

  std::vector<std::size_t> lengths_;
  Tally sources_;
  Tally replays_;
  Tally runs_;
  Tally builds_;
  int in_order_ = 0;
  int exceptions_ = 0;
  std::map<std::string, int> refusals_;
};

int main_of(int argc, char** argv) {
  Settings settings;
  CLI::App app("Random walks of rewrites from the seeds, with every kernel on the way checked.");
  app.add_option("--trails", settings.trails, "How many different kernels to parse")
      ->capture_default_str();
  app.add_option("--run", settings.runs, "How many of them to run on the CPU")
      ->capture_default_str();
  app.add_option("--compile", settings.builds, "How many of them to build with nvcc")
      ->capture_default_str();
  app.add_option("--steps", settings.steps, "Rewrites of a walk; its beginnings are trails as well")
      ->capture_default_str();
  app.add_option("--siblings", settings.siblings, "Other proposals to take at each step")
      ->capture_default_str();
  app.add_option("--largest", settings.largest, "The largest size to run at, an even one")
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "Seed of all random choices")->capture_default_str();
  double seconds = 0;
  const auto* budget = app.add_option("--seconds", seconds, "Stop after so many [no limit]");
  app.add_option("--target", settings.target, "Architecture to rewrite and build for")
      ->capture_default_str();
  app.add_option("--out", settings.out, "Folder for the trails of what fails, and for builds")
      ->capture_default_str();
  app.add_option("TRAILS", settings.starts, "Trails to start from as well, anywhere on them");
  CLI11_PARSE(app, argc, argv);
  if (budget->count() > 0) {
    settings.budget = std::chrono::duration<double>(seconds);
  }
  Trails trails(settings);
  trails.walk_all();
  return trails.print_report() ? 0 : 1;
}

} // namespace
} // namespace evo::test

int main(int argc, char** argv) {
  try {
    return evo::test::main_of(argc, argv);
  } catch (const evo::InputError& error) {
    fmt::print(stderr, "random_trails: {}\n", error.what());
    return 2;
  }
}
