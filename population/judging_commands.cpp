// check, bench, export: one candidate instead of a search.
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "population/backend.hpp"
#include "population/commands.hpp"
#include "population/cuda_evaluator.hpp"
#include "population/files.hpp"
#include "population/individual.hpp"
#include "population/interruption.hpp"
#include "population/recorder.hpp"
#include "population/summary.hpp"

namespace evo {
namespace {

struct Judged {
  Fitness fitness;
  std::map<std::string, KernelResources> kernels;
  BackendInfo backend;
};

/// Takes one file through all gates.
Judged judge(const Options& options, const std::filesystem::path& file) {
  const Problem problem = load_problem(options);
  const std::string source = exported_kernel(read_text(file));
  const auto gate = parse_gate({.id = {}, .seed = {}, .trail = {}, .source = source},
                               target_of(options)); // as written, so that a failure names its line
  if (const auto* failure = std::get_if<BuildFailure>(&gate)) {
    Judged judged;
    judged.fitness.verdict = failure->verdict;
    judged.fitness.detail = failure->detail;
    return judged;
  }
  const Genome genome = seed_genome(file.filename().string(), source);
  const Interruption interruption({});
  OpenBackend backend = open_backend(options, problem, interruption.token());
  Judged judged{.fitness = {}, .kernels = {}, .backend = backend.info};
  auto result = backend.evaluator->build(genome, interruption.token());
  if (auto* failure = std::get_if<BuildFailure>(&result)) {
    judged.fitness.verdict = failure->verdict;
    judged.fitness.detail = std::move(failure->detail);
    return judged;
  }
  const Built& built = std::get<Built>(result);
  judged.kernels = built.kernels;
  judged.fitness = backend.evaluator->judge(genome, built, nullptr, interruption.token()).fitness;
  return judged;
}

void print_verdict(std::FILE* stream, const Fitness& fitness) {
  fmt::print(stream, "{}{}{}\n", to_string(fitness.verdict), fitness.detail.empty() ? "" : ": ",
             fitness.detail);
}

} // namespace

int check_command(const Options& options, const std::filesystem::path& file) {
  const Judged judged = judge(options, file);
  print_verdict(stdout, judged.fitness);
  return judged.fitness.ok() ? 0 : 1;
}

int bench_command(const Options& options, const std::filesystem::path& file) {
  const Judged judged = judge(options, file);
  print_verdict(stdout, judged.fitness);
  if (!judged.fitness.ok()) {
    return 1;
  }
  fmt::print("{}", size_table(judged.fitness));
  fmt::print("{:.3f}x the reference ({}), products in {}\n", judged.fitness.speedup,
             judged.fitness.measured ? "measured" : "estimated, not measured",
             describe(products_of(judged.kernels)));
  for (const auto& [name, kernel] : judged.kernels) {
    fmt::print("  {}: {} registers, {} bytes of static shared memory, {} bytes spilled\n", name,
               kernel.registers, kernel.shared_bytes, kernel.spill_bytes);
  }
  fmt::print("Backend: {}\n", describe(judged.backend));
  return 0;
}

int export_command(const Options& options, const std::string& run, const std::string& id) {
  const std::filesystem::path folder = find_run(options.population, run);
  const Individual individual = load_individual(folder, id);
  if (!individual.fitness.ok()) {
    fmt::print(stderr, "evo: {} is not exported, for it failed: ", short_id(individual.genome.id));
    print_verdict(stderr, individual.fitness);
    return 1;
  }
  const auto json = nlohmann::json::parse(read_text(folder / "run.json"));
  Options of_run = options;
  of_run.problem = json.at("problem").get<std::string>();
  const Problem problem = load_problem(of_run);
  BackendInfo backend;
  backend.card = json.at("card");
  backend.toolkit = json.at("toolkit");
  const std::filesystem::path out =
      options.out.empty() ? std::filesystem::path(problem.output_file) : options.out;
  Exporter(problem, backend, json.at("seed"), out).write(individual);
  fmt::print("{}: {} of {}, {:.2f}x\n", out.string(), short_id(individual.genome.id),
             folder.string(), individual.fitness.speedup);
  return 0;
}

} // namespace evo
