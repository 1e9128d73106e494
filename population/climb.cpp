#include "population/climb.hpp"

#include <functional>
#include <utility>

#include <fmt/core.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "fitness/problem.hpp"

namespace evo {
namespace {

using Build = std::variant<Built, BuildFailure>;

std::vector<Build> build_all(const std::vector<Rung>& rungs, const FitnessEvaluator& evaluator,
                             int jobs, const std::stop_token& stop) {
  std::vector<Build> builds(rungs.size());
  oneapi::tbb::task_arena(jobs).execute([&] {
    oneapi::tbb::parallel_for(std::size_t{0}, rungs.size(), [&](std::size_t i) {
      builds[i] = evaluator.build(rungs[i].genome, stop);
    });
  });
  return builds;
}

/// Milliseconds at the middle size, TFLOP/s, speed-up and gain; or what is wrong.
std::string figures(const Rung& rung, const Rung* base, const Problem& problem) {
  const Fitness& fitness = rung.fitness;
  if (!fitness.ok()) {
    return fmt::format("– | – | – | {}", verdict_line(fitness.verdict, fitness.detail));
  }
  const SizeResult& middle = fitness.sizes[fitness.sizes.size() / 2];
  const double tflops = problem.flops_at(middle.size) / middle.median_ms * 1e-9;
  const std::string gain = base != nullptr && base->fitness.ok()
                               ? fmt::format("{:.3f}", fitness.speedup / base->fitness.speedup)
                               : "–";
  return fmt::format("{:.3f} | {:.1f} | {:.3f} | {}", middle.median_ms, tflops, fitness.speedup,
                     gain);
}

std::string table(const std::vector<Rung>& rungs, const Problem& problem, const char* first_column,
                  const std::function<const Rung*(std::size_t)>& base) {
  const int middle = problem.sizes[problem.sizes.size() / 2];
  std::string text = fmt::format("| {} | ms at {} | TFLOP/s | × reference | gain |\n"
                                 "|---|---|---|---|---|\n",
                                 first_column, middle);
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    std::string label = rungs[i].label;
    for (const Gene& gene : rungs[i].dropped) {
      label += ", nor " + to_string(gene);
    }
    text += fmt::format("| {} | {} |\n", label, figures(rungs[i], base(i), problem));
  }
  return text;
}

} // namespace

std::vector<Rung> climb(const Genome& seed, const std::vector<Gene>& trail,
                        const Dialect& dialect) {
  std::vector<Rung> rungs{{.label = seed.seed, .genome = seed}};
  for (const Gene& gene : trail) {
    auto next = append(rungs.back().genome, gene, dialect);
    if (!next) {
      throw InputError(fmt::format("gene {} of the trail, {}, does not apply; evo propose lists "
                                   "what does",
                                   rungs.size(), to_string(gene)));
    }
    rungs.push_back({.label = to_string(gene), .genome = std::move(*next)});
  }
  return rungs;
}

std::vector<Rung> ablation(const Genome& seed, const std::vector<Gene>& trail,
                           const Dialect& dialect) {
  std::vector<Rung> rungs{{.label = "all", .genome = climb(seed, trail, dialect).back().genome}};
  for (std::size_t left_out = 0; left_out < trail.size(); ++left_out) {
    std::vector<Gene> others = trail;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    Followed followed = follow(seed, others, dialect);
    rungs.push_back({.label = "without " + to_string(trail[left_out]),
                     .genome = std::move(followed.genome),
                     .dropped = std::move(followed.dropped)});
  }
  return rungs;
}

void judge(std::vector<Rung>& rungs, FitnessEvaluator& evaluator, int jobs, std::stop_token stop) {
  const std::vector<Build> builds = build_all(rungs, evaluator, jobs, stop);
  for (std::size_t i = 0; i < rungs.size() && !stop.stop_requested(); ++i) {
    if (const auto* failure = std::get_if<BuildFailure>(&builds[i])) {
      rungs[i].fitness = failed(failure->verdict, failure->detail);
      continue;
    }
    rungs[i].fitness =
        evaluator.judge(rungs[i].genome, std::get<Built>(builds[i]), nullptr, stop).fitness;
  }
}

std::string climb_table(const std::vector<Rung>& rungs, const Problem& problem) {
  return table(rungs, problem, "after",
               [&](std::size_t i) { return i == 0 ? nullptr : &rungs[i - 1]; });
}

std::string ablation_table(const std::vector<Rung>& rungs, const Problem& problem) {
  return table(rungs, problem, "trail",
               [&](std::size_t i) { return i == 0 ? nullptr : &rungs[0]; });
}

} // namespace evo
