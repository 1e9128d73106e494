#include "population/judging_session.hpp"

#include <utility>

#include "fitness/export.hpp"
#include "population/cuda_evaluator.hpp"
#include "population/files.hpp"

namespace evo {
namespace {

Judged unbuilt(BuildFailure failure) {
  return {.id = {}, .fitness = failed(failure.verdict, std::move(failure.detail)), .built = {}};
}

} // namespace

JudgingSession::JudgingSession(const Options& options)
    : options_(options), problem_(load_problem(options)) {}

Judged JudgingSession::judge(const std::filesystem::path& file) {
  return take(file, true);
}

Judged JudgingSession::verify(const std::filesystem::path& file) {
  return take(file, false);
}

Judged JudgingSession::take(const std::filesystem::path& file, bool timed) {
  const std::string source = exported_kernel(read_text(file));
  auto gate = parse_gate({.id = {}, .seed = {}, .trail = {}, .source = source},
                         target_of(options_)); // as written, so that a failure names its line
  if (auto* failure = std::get_if<BuildFailure>(&gate)) {
    return unbuilt(std::move(*failure));
  }
  const Genome genome = seed_genome(file.filename().string(), source);
  auto result = backend().evaluator->build(genome, stop());
  if (auto* failure = std::get_if<BuildFailure>(&result)) {
    return unbuilt(std::move(*failure));
  }
  Built& built = std::get<Built>(result);
  FitnessEvaluator& evaluator = *backend().evaluator;
  Fitness fitness{.verdict = Verdict::Ok, .detail = {}, .sizes = {}};
  if (timed) {
    fitness = evaluator.judge(genome, built, nullptr, stop()).fitness;
  }
  if (fitness.ok()) {
    fitness = verified(std::move(fitness), evaluator.verify(genome, built, true, stop()));
  }
  return {genome.id, std::move(fitness), std::move(built)};
}

OpenBackend& JudgingSession::backend() {
  if (!backend_) {
    backend_ = open_backend(options_, problem_, stop());
  }
  return *backend_;
}

} // namespace evo
