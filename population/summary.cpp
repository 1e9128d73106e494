#include "population/summary.hpp"

#include <fmt/core.h>

#include "population/accuracy_table.hpp"

namespace evo {
namespace {

std::string seed_lines(const Archive& archive, const std::vector<Genome>& seeds) {
  std::string text;
  for (const Genome& seed : seeds) {
    const Individual* individual = archive.find(seed.id);
    if (individual != nullptr && individual->fitness.ok()) {
      text += fmt::format("  {}: {:.2f}x\n", seed.seed, individual->fitness.speedup);
    }
  }
  return text;
}

std::string verdict_line(const std::map<Verdict, int>& counts) {
  std::string text;
  for (const auto& [verdict, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(verdict), count);
  }
  return text;
}

} // namespace

std::string size_table(const Fitness& fitness, const std::vector<double>& cold_ms) {
  std::string text;
  for (std::size_t i = 0; i < fitness.sizes.size(); ++i) {
    const SizeResult& size = fitness.sizes[i];
    const std::string cold = i < cold_ms.size() ? fmt::format("cold {:.4g} ms, ", cold_ms[i]) : "";
    text +=
        fmt::format("  {}: {:.4g} ms, {}the reference {:.4g} ms, {:.2f}x\n", size.size,
                    size.median_ms, cold, size.reference_ms, size.reference_ms / size.median_ms);
  }
  return text;
}

std::string trail_table(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps) {
    const std::string gain = step.gain ? fmt::format("{:.2f}x", *step.gain) : "-";
    text += fmt::format("  {:>7}  {}\n", gain, to_string(step.gene));
  }
  return text;
}

std::string summary(const Archive& archive, const Lineage& lineage,
                    const std::vector<Genome>& seeds, const BackendInfo& backend) {
  const Individual* best = archive.best();
  if (best == nullptr) {
    return "Nothing was judged.\n";
  }
  const Genome& genome = best->genome;
  std::string text = fmt::format("Best: {} of generation {}, {:.2f}x the reference ({}), products "
                                 "in {}\n",
                                 short_id(genome.id), best->generation, best->fitness.speedup,
                                 backend.measured() ? "measured" : "estimated, not measured",
                                 describe(products_of(best->kernels)));
  text += size_table(best->fitness);
  if (best->fitness.verification) {
    text += fmt::format("Accuracy: {}\n", describe(*best->fitness.verification));
  }
  text += fmt::format("Trail from {}, with each rewrite's gain:\n", genome.seed);
  text += genome.trail.empty() ? "  none\n" : trail_table(lineage.steps(genome.id));
  text += genome.keeps_order ? "" : "  Its sums are rounded in another order than the seed's.\n";
  text += "Seeds:\n" + seed_lines(archive, seeds);
  text += fmt::format("Verdicts: {}\n", verdict_line(archive.counts()));
  if (!archive.failures().empty()) {
    text += fmt::format("Failures by stage: {}\n", to_string(archive.failures()));
  }
  if (archive.known() > 0) {
    text += fmt::format("Known from earlier runs, and not judged again: {}\n", archive.known());
  }
  return text + fmt::format("Backend: {}\n", describe(backend));
}

std::string describe(const BackendInfo& backend) {
  if (backend.recorded()) {
    BackendInfo judge = backend;
    judge.recorded_in.clear();
    return fmt::format("verdicts recorded in {} ({})", backend.recorded_in, describe(judge));
  }
  const char* unread =
      backend.reads_code ? "" : "; product precisions unknown: no cuobjdump beside nvcc";
  if (backend.measured()) {
    return fmt::format("cuda, {}, {}, {}, reference in {}{}", backend.card, backend.target.arch,
                       backend.toolkit, backend.reference_precision, unread);
  }
  return fmt::format("model of {}, {}: times are estimated, not measured{}", backend.target.arch,
                     backend.toolkit, unread);
}

} // namespace evo
