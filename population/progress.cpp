#include "population/progress.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace evo {
namespace {

constexpr int bar_width = 16;

std::string describe(const Failures& failures) {
  const int all = total(failures);
  return all == 0 ? "failed 0" : fmt::format("failed {} ({})", all, to_string(failures));
}

int number_of(const Tally& tally, Verdict verdict) {
  const auto found = tally.verdicts.find(verdict);
  return found == tally.verdicts.end() ? 0 : found->second;
}

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

} // namespace

void Tally::add(const Individual& individual) {
  ++settled;
  built += individual.built && !individual.known ? 1 : 0;
  known += individual.known ? 1 : 0;
  ++verdicts[individual.verdict()];
  count(failures, individual);
}

std::string bar(double share, int width) {
  const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width));
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(width - full), '.') + "]";
}

std::string progress_line(const ProgressState& state) {
  std::string line = fmt::format(
      "generation {}/{}  best {:.2f}x  built {}  correct {}  duplicate {}  {}  judge busy {:.0f} %",
      state.generation, state.generations, state.best_speedup, state.tally.built,
      number_of(state.tally, Verdict::Ok), number_of(state.tally, Verdict::Duplicate),
      describe(state.tally.failures), 100 * state.busy_share);
  if (state.tally.known > 0) {
    line += fmt::format("  known {}", state.tally.known);
  }
  if (state.left) {
    line += fmt::format("  {}:{:02} left", state.left->count() / 60, state.left->count() % 60);
  }
  return line;
}

Progress::Progress(const ProgressSettings& settings, std::FILE* stream)
    : settings_(settings), stream_(stream) {}

void Progress::settled(const Individual& individual) {
  const std::lock_guard lock(mutex_);
  open_[individual.generation].add(individual);
  if (individual.elite) {
    best_speedup_ = individual.fitness.speedup;
  }
  if (individual.generation > 0) {
    ++settled_;
    judge_s_ += individual.timing.judge_s;
  }
  if (settings_.terminal) {
    draw();
  }
}

void Progress::generation(const Generation& generation) {
  const std::lock_guard lock(mutex_);
  last_generation_ = Clock::now();
  if (generation.number == 0) {
    search_start_ = last_generation_;
  }
  const std::string line = progress_line(state(generation.number, open_[generation.number]));
  open_.erase(generation.number);
  fmt::print(stream_, "{}{}{}\n", settings_.terminal ? "\r\x1b[K" : "", line,
             generation.complete ? "" : "  (stopped)");
  std::fflush(stream_);
}

void Progress::resume(int number, const std::vector<Individual>& judged_again) {
  const std::lock_guard lock(mutex_);
  for (const Individual& individual : judged_again) {
    best_speedup_ = individual.elite ? individual.fitness.speedup : best_speedup_;
  }
  resumed_after_ = number;
  search_start_ = last_generation_ = Clock::now();
  fmt::print(stream_, "Resumed after generation {}, {} judged again, best {:.2f}x\n", number,
             judged_again.size(), best_speedup_);
}

double Progress::busy_share() const {
  const double elapsed = seconds(Clock::now() - search_start_);
  return elapsed > 0 ? std::min(1.0, judge_s_ / elapsed) : 0;
}

double Progress::generation_seconds() const {
  return seconds(Clock::now() - last_generation_);
}

ProgressState Progress::state(int generation, const Tally& tally) const {
  return {.generation = generation,
          .generations = settings_.generations,
          .population = settings_.population,
          .best_speedup = best_speedup_,
          .tally = tally,
          .busy_share = busy_share(),
          .left = left()};
}

/// What the rest takes at the pace so far, but no more than the budget has left.
std::optional<std::chrono::seconds> Progress::left() const {
  std::optional<double> left;
  if (settled_ > 0) {
    const double pace = seconds(Clock::now() - search_start_) / settled_;
    const int generations = settings_.generations - resumed_after_;
    left = pace * (generations * settings_.population - settled_);
  }
  if (settings_.budget) {
    const double budget = static_cast<double>(settings_.budget->count());
    const double rest = std::max(0.0, budget - seconds(Clock::now() - start_));
    left = left ? std::min(*left, rest) : rest;
  }
  return left ? std::optional(std::chrono::seconds(std::lround(*left))) : std::nullopt;
}

/// Redraws the line of the oldest generation under way, cut to what most terminals hold.
void Progress::draw() const {
  const auto& [number, tally] = *open_.begin();
  const double share = static_cast<double>(tally.settled) / settings_.population;
  const std::string line = bar(share, bar_width) + " " + progress_line(state(number, tally));
  fmt::print(stream_, "\r\x1b[K\x1b[?7l{}\x1b[?7h", line); // without wrapping at the edge
  std::fflush(stream_);
}

} // namespace evo
