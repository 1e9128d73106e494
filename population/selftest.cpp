#include "population/selftest.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "population/clock.hpp"
#include "population/variation.hpp"
#include "population/waiting_pool.hpp"

namespace evo {
namespace {

constexpr std::uint64_t breeding_seed = 11; // its kernels take the CPU half a minute
constexpr int slots_per_child = 20;         // breeding may repeat itself

/// Tells a judge nothing.
std::string random_name() {
  std::random_device device;
  return fmt::format("{:08x}.cu", device());
}

struct BuildOutcome {
  Genome genome;
  std::variant<Built, BuildFailure> built;
  double seconds = 0;
};

BuildOutcome build(const FitnessEvaluator& evaluator, const Trial& trial, std::stop_token stop) {
  const auto start = Clock::now();
  Genome genome = seed_genome(random_name(), trial.source);
  auto built = evaluator.build(genome, std::move(stop), trial.gates);
  return {std::move(genome), std::move(built), seconds_since(start)};
}

/// Judges built trials, one after the other.
class Judge {
public:
  Judge(FitnessEvaluator& evaluator, std::stop_token stop)
      : evaluator_(evaluator), stop_(std::move(stop)) {}

  TrialResult judge(const Trial& trial, BuildOutcome outcome) {
    TrialResult result{.name = trial.name,
                       .expected = trial.expected,
                       .gates = trial.gates,
                       .good = trial.good,
                       .fitness = {},
                       .seconds = outcome.seconds};
    if (auto* failure = std::get_if<BuildFailure>(&outcome.built)) {
      result.fitness = failed(failure->verdict, std::move(failure->detail));
      return result;
    }
    const auto start = Clock::now();
    const Built& built = std::get<Built>(outcome.built);
    const Incumbent* incumbent = incumbent_ ? &*incumbent_ : nullptr;
    Judgement judgement = evaluator_.judge(outcome.genome, built, incumbent, stop_);
    const bool elite = trial.good && makes_an_elite(judgement, incumbent);
    result.seconds += seconds_since(start);
    result.fitness = std::move(judgement.fitness);
    if (!trial.good && result.fitness.ok() && !result.fitness.verification) {
      result.fitness = verified(std::move(result.fitness), // as a faster one would be
                                evaluator_.verify(outcome.genome, built, false, stop_));
    }
    if (judgement.incumbent && judgement.incumbent->ok()) {
      incumbent_->fitness = std::move(*judgement.incumbent);
    } else if (judgement.incumbent) {
      incumbent_.reset();
    }
    if (elite) {
      incumbent_ = {outcome.genome.id, built, result.fitness};
    }
    return result;
  }

private:
  FitnessEvaluator& evaluator_;
  std::stop_token stop_;
  std::optional<Incumbent> incumbent_;
};

Individual known_good(Genome genome) {
  Individual individual;
  individual.genome = std::move(genome);
  individual.fitness.verdict = Verdict::Ok;
  individual.fitness.speedup = 1;
  return individual;
}

/// By specimen: whether all its trials are right.
std::map<std::string, bool> catches(const SelftestReport& report) {
  std::map<std::string, bool> caught;
  for (const TrialResult& result : report.results) {
    if (!result.good) {
      const auto place = caught.try_emplace(result.name, true).first;
      place->second = place->second && result.right();
    }
  }
  return caught;
}

std::string_view to_string(Gates gates) {
  return gates == Gates::All ? "all" : "without policy";
}

} // namespace

int SelftestReport::specimens() const {
  return static_cast<int>(catches(*this).size());
}

int SelftestReport::caught() const {
  return static_cast<int>(
      std::ranges::count_if(catches(*this), [](const auto& entry) { return entry.second; }));
}

int SelftestReport::good() const {
  return static_cast<int>(std::ranges::count_if(results, &TrialResult::good));
}

int SelftestReport::false_alarms() const {
  return static_cast<int>(
      std::ranges::count_if(results, [](const auto& r) { return r.good && !r.right(); }));
}

bool SelftestReport::passed() const {
  return complete && caught() == specimens() && false_alarms() == 0;
}

std::vector<Trial> specimen_trials(const std::vector<Specimen>& zoo, bool on_card) {
  std::vector<Trial> trials;
  const auto add = [&](const Specimen& specimen, const Verdicts& expected, Gates gates) {
    if (!expected.empty()) {
      trials.push_back(
          {.name = specimen.name, .source = specimen.source, .expected = expected, .gates = gates});
    }
  };
  for (const Specimen& specimen : zoo) {
    add(specimen, on_card ? specimen.expected : specimen.on_model, Gates::All);
    add(specimen, on_card ? specimen.behind_policy : Verdicts{}, Gates::WithoutPolicy);
  }
  return trials;
}

std::vector<Trial> seed_trials(const std::vector<Genome>& seeds) {
  std::vector<Trial> trials;
  for (const Genome& seed : seeds) {
    trials.push_back(
        {.name = seed.seed, .source = seed.source, .expected = {Verdict::Ok}, .good = true});
  }
  return trials;
}

/// A family for each seed, in turn: in a single one, whichever seed has the first children soon has
/// nearly all.
std::vector<Trial> bred_trials(const std::vector<Genome>& seeds, const Dialect& dialect,
                               std::size_t count) {
  std::vector<Nursery> families;
  std::ranges::transform(seeds, std::back_inserter(families), [](const Genome& seed) {
    return Nursery{.members = {known_good(seed)}, .seeds = {seed}, .seen = {seed.id}, .credit = {}};
  });
  std::vector<Trial> trials;
  const int slots = static_cast<int>(count) * slots_per_child;
  for (int slot = 0; slot < slots && trials.size() < count; ++slot) {
    Nursery& family = families[static_cast<std::size_t>(slot) % families.size()];
    Proposal proposal = breed(family, dialect, random_for(breeding_seed, 1, slot));
    if (!proposal.fault.empty()) {
      throw std::runtime_error(proposal.fault);
    }
    if (!family.seen.contains(proposal.genome.id)) {
      for (Nursery& each : families) {
        each.seen.insert(proposal.genome.id);
      }
      trials.push_back({.name = fmt::format("bred {}", trials.size() + 1),
                        .source = proposal.genome.source,
                        .expected = {Verdict::Ok},
                        .good = true});
      family.members.push_back(known_good(std::move(proposal.genome)));
    }
  }
  if (trials.size() < count) {
    throw std::runtime_error(
        fmt::format("only {} of {} kernels could be bred from the seeds", trials.size(), count));
  }
  return trials;
}

SelftestReport run_selftest(FitnessEvaluator& evaluator, const std::vector<Trial>& trials, int jobs,
                            const std::function<void(const TrialResult&)>& done,
                            std::stop_token stop) {
  const auto start = Clock::now();
  std::vector<std::future<BuildOutcome>> builds;
  WaitingPool builders(jobs);
  for (const Trial& trial : trials) {
    const auto task = std::make_shared<std::packaged_task<BuildOutcome()>>(
        [&evaluator, &trial, stop] { return build(evaluator, trial, stop); });
    builds.push_back(task->get_future());
    builders.run([task] { (*task)(); });
  }
  SelftestReport report;
  Judge judge(evaluator, stop);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    TrialResult result = judge.judge(trials[i], builds[i].get());
    if (stop.stop_requested()) { // its verdict may be the stop's
      report.complete = false;
      break;
    }
    done(result);
    report.results.push_back(std::move(result));
  }
  report.seconds = seconds_since(start);
  return report;
}

std::string to_line(const TrialResult& result) {
  const char* outcome = result.right() ? "ok" : result.good ? "FALSE ALARM" : "MISSED";
  const char* skipped = result.gates == Gates::All ? "" : ", policy skipped";
  std::string line = fmt::format("{:<42} {:<30} {:<18} {:<11} {:5.1f} s\n", result.name + skipped,
                                 to_string(result.expected), to_string(result.fitness.verdict),
                                 outcome, result.seconds);
  if (!result.right() && !result.fitness.detail.empty()) {
    line += fmt::format("    {}\n", result.fitness.detail);
  }
  return line;
}

std::string to_line(const SelftestReport& report) {
  const int seconds = static_cast<int>(report.seconds);
  return fmt::format("{}caught {} of {}, {} false alarms in {}, {}:{:02}\n",
                     report.complete ? "" : "stopped; ", report.caught(), report.specimens(),
                     report.false_alarms(), report.good(), seconds / 60, seconds % 60);
}

nlohmann::json to_record(const SelftestReport& report) {
  auto trials = nlohmann::json::array();
  for (const TrialResult& result : report.results) {
    auto expected = nlohmann::json::array();
    std::ranges::transform(result.expected, std::back_inserter(expected),
                           [](Verdict verdict) { return to_string(verdict); });
    trials.push_back({{"name", result.name},
                      {"gates", to_string(result.gates)},
                      {"good", result.good},
                      {"expected", std::move(expected)},
                      {"got", to_string(result.fitness.verdict)},
                      {"detail", result.fitness.detail},
                      {"right", result.right()},
                      {"seconds", result.seconds}});
  }
  return {{"passed", report.passed()},       {"complete", report.complete},
          {"specimens", report.specimens()}, {"caught", report.caught()},
          {"good", report.good()},           {"false_alarms", report.false_alarms()},
          {"seconds", report.seconds},       {"trials", std::move(trials)}};
}

} // namespace evo
