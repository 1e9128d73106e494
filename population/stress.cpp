#include "population/stress.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "fitness/problem.hpp"
#include "mutators/rewrite.hpp"
#include "population/clock.hpp"
#include "population/pipeline.hpp"

namespace evo {
namespace {

constexpr int every = 10; // one of so many is replaced
constexpr std::array sabotages{Sabotage::Crash, Sabotage::Trap, Sabotage::Hang};
constexpr double most_loss = 0.15;
constexpr double noise = 0.01;
constexpr int walks_per_wave = 16;
constexpr int steps_per_walk = 8;
constexpr int attempts_per_candidate = 20;

/// Random walks from the seeds, no two candidates alike.
std::vector<Genome> breed(const StressSettings& settings, const std::vector<Genome>& seeds,
                          const Dialect& dialect) {
  std::vector<Genome> candidates;
  std::set<std::string> seen;
  for (const Genome& seed : seeds) {
    seen.insert(seed.id);
  }
  const auto wanted = static_cast<std::size_t>(settings.candidates);
  for (int wave = 0; candidates.size() < wanted; ++wave) {
    if (wave * walks_per_wave * steps_per_walk >= attempts_per_candidate * settings.candidates) {
      throw InputError(fmt::format("only {} different candidates can be bred from the seeds; ask "
                                   "for fewer with --candidates",
                                   candidates.size()));
    }
    std::vector<std::vector<Genome>> walks(walks_per_wave);
    oneapi::tbb::task_arena(settings.jobs).execute([&] {
      oneapi::tbb::parallel_for(0, walks_per_wave, [&](int slot) {
        Random random = random_for(settings.seed, 1 + wave, slot);
        random_walk(seeds[pick(random, seeds.size())], steps_per_walk, dialect, random,
                    [&walk = walks[static_cast<std::size_t>(slot)]](const Genome& genome) {
                      walk.push_back(genome);
                      return true;
                    });
      });
    });
    for (Genome& genome : std::views::join(walks)) {
      if (candidates.size() < wanted && seen.insert(genome.id).second) {
        candidates.push_back(std::move(genome));
      }
    }
  }
  return candidates;
}

/// As another evaluator, but what would do damage gets past the policy.
class Lenient : public FitnessEvaluator {
public:
  explicit Lenient(FitnessEvaluator& evaluator) : evaluator_(evaluator) {}

  std::variant<Built, BuildFailure> build(const Genome& genome, std::stop_token stop,
                                          Gates) const override {
    return evaluator_.build(genome, std::move(stop), Gates::WithoutPolicy);
  }
  Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                  std::stop_token stop) override {
    return evaluator_.judge(genome, built, incumbent, std::move(stop));
  }
  VerifyResponse verify(const Genome& genome, const Built& built, bool full,
                        std::stop_token stop) override {
    return evaluator_.verify(genome, built, full, std::move(stop));
  }

private:
  FitnessEvaluator& evaluator_;
};

/// Judges nothing.
class BuildOnly : public Lenient {
public:
  using Lenient::Lenient;

  Judgement judge(const Genome&, const Built&, const Incumbent*, std::stop_token) override {
    return {};
  }
};

std::vector<Pipeline::Propose> proposals(const std::vector<Genome>& genomes) {
  std::vector<Pipeline::Propose> all;
  for (const Genome& genome : genomes) {
    all.push_back([genome] {
      return Proposal{.genome = genome, .parents = {}, .mutator = {}, .dropped = {}, .fault = {}};
    });
  }
  return all;
}

struct JudgedKernels {
  std::vector<Individual> seeds;
  std::vector<Individual> candidates;
  double seconds = 0; // of the candidates
};

JudgedKernels judge_all(const std::vector<Genome>& seeds, const std::vector<Genome>& candidates,
                        FitnessEvaluator& evaluator, int jobs, std::stop_token stop) {
  const auto ignore = [](const Individual&) {};
  Pipeline pipeline(evaluator, jobs, std::move(stop), {.better = ignore, .settled = ignore});
  JudgedKernels judged;
  pipeline.submit(0, 0, proposals(seeds));
  judged.seeds = pipeline.wait();
  const auto start = Clock::now();
  pipeline.submit(1, 0, proposals(candidates));
  judged.candidates = pipeline.wait();
  judged.seconds = seconds_since(start);
  return judged;
}

StressPass summarize(const JudgedKernels& judged, const std::set<int>& replaced) {
  StressPass pass;
  pass.candidates = static_cast<int>(judged.candidates.size());
  pass.seconds = judged.seconds;
  const auto take = [&pass](const Individual& individual) {
    if (individual.elite && (!pass.best || fitter(individual, *pass.best))) {
      pass.best = individual;
    }
  };
  std::ranges::for_each(judged.seeds, take);
  for (const Individual& individual : judged.candidates) {
    pass.hung_seconds += individual.verdict() == Verdict::Hang ? individual.timing.judge_s : 0;
    if (replaced.contains(individual.slot)) {
      ++pass.replaced[individual.verdict()];
    } else {
      take(individual);
    }
  }
  return pass;
}

/// Every tenth slot, so that the best of the undisturbed pass is none of them.
std::set<int> slots_to_replace(const StressPass& undisturbed) {
  const int first = undisturbed.best && undisturbed.best->generation > 0
                        ? (undisturbed.best->slot + every / 2) % every
                        : every - 1;
  std::set<int> slots;
  for (int slot = first; slot < undisturbed.candidates; slot += every) {
    slots.insert(slot);
  }
  return slots;
}

std::string line(const char* name, const StressPass& pass) {
  return fmt::format("{}: {} candidates in {:.1f} s, {:.1f} s of them until deadlines: {:.2f} per "
                     "second; best {}\n",
                     name, pass.candidates, pass.seconds, pass.hung_seconds, pass.rate(),
                     pass.best ? fmt::format("{}, {:.3f}x", short_id(pass.best->genome.id),
                                             pass.best->fitness.speedup)
                               : "none");
}

std::string trimmed_last_word(const std::string& text) {
  const auto end = text.find_last_not_of(" \n*&") + 1;
  const auto begin = text.find_last_of(" \n*&", end - 1) + 1;
  return text.substr(begin, end - begin);
}

} // namespace

bool StressReport::same_winner() const {
  if (!undisturbed.best || !disturbed.best) {
    return false;
  }
  const double ratio = disturbed.best->fitness.speedup / undisturbed.best->fitness.speedup;
  return disturbed.best->genome.id == undisturbed.best->genome.id || std::abs(ratio - 1) < noise;
}

bool StressReport::all_replaced_failed() const {
  constexpr std::array expected{Verdict::Crash, Verdict::Hang, Verdict::LaunchError};
  return std::ranges::all_of(disturbed.replaced, [&](const auto& count) {
    return std::ranges::find(expected, count.first) != expected.end();
  });
}

bool StressReport::passed() const {
  return same_winner() && all_replaced_failed() && loss() < most_loss;
}

StressReport stress(const StressSettings& settings, const std::vector<Genome>& seeds,
                    const Dialect& dialect, const std::string& entry, FitnessEvaluator& evaluator,
                    std::stop_token stop) {
  if (settings.candidates < every) {
    throw InputError(
        fmt::format("--candidates must be at least {}, for every tenth is replaced", every));
  }
  const auto start = Clock::now();
  const auto done = [&](const char* what) {
    settings.progress(fmt::format("{} after {:.0f} s", what, seconds_since(start)));
  };
  const std::vector<Genome> candidates = breed(settings, seeds, dialect);
  done("bred");
  BuildOnly builds(evaluator);
  Lenient judge(evaluator);
  judge_all(seeds, candidates, builds, settings.jobs, stop);
  done("built");

  StressReport report;
  const JudgedKernels first = judge_all(seeds, candidates, judge, settings.jobs, stop);
  report.undisturbed = summarize(first, {});
  done("judged undisturbed");
  const std::set<int> replaced = slots_to_replace(report.undisturbed);

  std::vector<Genome> disturbed = candidates;
  std::vector<Genome> saboteurs;
  for (const int slot : replaced) {
    Genome& genome = disturbed[static_cast<std::size_t>(slot)];
    genome = sabotaged(genome, sabotages[saboteurs.size() % sabotages.size()], entry);
    saboteurs.push_back(genome);
  }
  judge_all({}, saboteurs, builds, settings.jobs, stop);
  report.disturbed = summarize(judge_all(seeds, disturbed, judge, settings.jobs, stop), replaced);
  return report;
}

std::string describe(const StressReport& report) {
  std::string text = line("undisturbed", report.undisturbed) + line("disturbed", report.disturbed);
  text += "replaced:";
  for (const auto& [verdict, count] : report.disturbed.replaced) {
    text += fmt::format(" {} {}", to_string(verdict), count);
  }
  return text + fmt::format("\nthe disturbance costs {:.1f} % of the throughput outside deadlines; "
                            "{} winner: {}\n",
                            100 * report.loss(), report.same_winner() ? "the same" : "ANOTHER",
                            report.passed() ? "passed" : "FAILED");
}

Genome sabotaged(const Genome& genome, Sabotage how, const std::string& entry) {
  const std::string head = fmt::format("extern \"C\" cudaError_t {}(", entry);
  const auto begin = genome.source.find(head);
  const auto close = genome.source.find(')', begin);
  const auto body = genome.source.find('{', close);
  if (begin == std::string::npos || body == std::string::npos) {
    throw InputError(fmt::format("{} has no line that begins with '{}'", genome.seed, head));
  }
  const std::string stream = trimmed_last_word(genome.source.substr(begin, close - begin));
  std::string kernel;
  std::string statement = fmt::format("\n  disturb<<<1, 1, 0, {}>>>();", stream);
  switch (how) {
  case Sabotage::Crash:
    statement = "\n  *static_cast<volatile int *>(nullptr) = 0;";
    break;
  case Sabotage::Trap:
    kernel = "__global__ void disturb() { asm volatile(\"trap;\"); }\n\n";
    break;
  case Sabotage::Hang:
    // The compiler ends a loop whose condition it can know, and this one the day the clock is 0.
    kernel = "__global__ void disturb() {\n  long long now = 1;\n  while (now != 0) {\n"
             "    asm volatile(\"mov.u64 %0, %%clock64;\" : \"=l\"(now));\n  }\n}\n\n";
    break;
  }
  Genome result{.id = {}, .seed = genome.seed, .trail = {}, .source = genome.source};
  result.source.insert(body + 1, statement);
  result.source.insert(begin, kernel);
  result.id = digest(result.source);
  return result;
}

} // namespace evo
