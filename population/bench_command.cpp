// bench: one kernel's times, alone and against another's.
#include <fmt/core.h>

#include "fitness/block_statistics.hpp"
#include "population/accuracy_table.hpp"
#include "population/commands.hpp"
#include "population/duel.hpp"
#include "population/individual.hpp"
#include "population/judging_session.hpp"
#include "population/summary.hpp"
#include "population/timing_report.hpp"

namespace evo {
namespace {

constexpr int blocks = 12;
constexpr int cold_calls = 10;

/// Prints what became of a file after all; false unless that is well.
bool still_ok(const std::filesystem::path& file, Verdict verdict, const std::string& detail) {
  if (verdict != Verdict::Ok) {
    fmt::print("{}: {}\n", file.string(), verdict_line(verdict, detail));
  }
  return verdict == Verdict::Ok;
}

void print_accuracy(const Judged& judged) {
  if (judged.fitness.verification) {
    fmt::print("\n{}", accuracy_report(*judged.fitness.verification));
  }
}

void print_estimate(const Judged& judged) {
  fmt::print("{}{:.3f}x the reference (estimated, not measured), products in {}\n",
             size_table(judged.fitness), judged.fitness.speedup,
             describe(products_of(judged.built.kernels)));
}

/// Warm and cold, beside the reference. False when it fails on the way.
bool print_times(JudgingSession& session, const std::filesystem::path& file, const Judged& judged) {
  CompareRequest request;
  request.contenders = {contender(judged.id, judged.built)};
  request.sizes = session.problem().sizes;
  request.blocks = blocks;
  request.cold_calls = cold_calls;
  const CompareResponse response = session.backend().timer->compare(request, session.stop());
  if (!still_ok(file, response.verdict, response.detail)) {
    return false;
  }
  const Fitness fitness =
      with_reference(with_times(judged.fitness, response.blocks, 0), response.blocks);
  const Estimate estimate = student_interval(log_ratios(response.blocks, 1, 0), 0.05);
  fmt::print("{}{} the reference (measured in {} blocks), products in {}\n",
             size_table(fitness, response.cold_ms.at(0)), describe(estimate), blocks,
             describe(products_of(judged.built.kernels)));
  fmt::print("An empty kernel: {}\n", response.empty_kernel_ms > 0
                                          ? fmt::format("{:.4f} ms", response.empty_kernel_ms)
                                          : "not known");
  fmt::print("The card: {}\n", describe_conditions(response.blocks));
  return true;
}

/// One duel, or `trials` of them and how often the first file won.
bool print_duels(JudgingSession& session, const std::filesystem::path& file, const Judged& judged,
                 const BenchOptions& bench) {
  const Judged other = session.judge(bench.against);
  if (!still_ok(bench.against, other.fitness.verdict, other.fitness.detail)) {
    return false;
  }
  Tournament tournament;
  while (tournament.duels < bench.trials && !session.stop().stop_requested()) {
    const Duel result = duel(*session.backend().timer, contender(other.id, other.built),
                             contender(judged.id, judged.built), session.problem().sizes,
                             duel_deadline(other.fitness, judged.fitness), session.stop());
    if (!still_ok(result.culprit == other.id ? bench.against : file, result.verdict,
                  result.detail)) {
      return false;
    }
    tournament.add(result);
  }
  fmt::print("{}",
             describe(tournament, file.string(), bench.against.string(), other.id == judged.id));
  return true;
}

} // namespace

int bench_command(const Options& options, const std::filesystem::path& file,
                  const BenchOptions& bench) {
  JudgingSession session(options);
  const Judged judged = session.judge(file);
  fmt::print("{}\n", verdict_line(judged.fitness.verdict, judged.fitness.detail));
  if (!judged.fitness.ok()) {
    print_accuracy(judged);
    return 1;
  }
  const bool measured = session.backend().timer != nullptr;
  if (!measured && !bench.against.empty()) {
    throw InputError("--against needs a card: on the model times are estimates, and equal ones "
                     "decide nothing");
  }
  if (!measured) {
    print_estimate(judged);
  } else if (!print_times(session, file, judged)) {
    return 1;
  }
  for (const auto& [name, kernel] : judged.built.kernels) {
    fmt::print("  {}: {} registers, {} bytes of static shared memory, {} bytes spilled\n", name,
               kernel.registers, kernel.shared_bytes, kernel.spill_bytes);
  }
  if (!bench.against.empty() && !print_duels(session, file, judged, bench)) {
    return 1;
  }
  fmt::print("Backend: {}\n", describe(session.backend().info));
  print_accuracy(judged);
  return 0;
}

} // namespace evo
