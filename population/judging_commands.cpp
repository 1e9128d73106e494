// check, export: one candidate instead of a search.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "population/accuracy_table.hpp"
#include "population/commands.hpp"
#include "population/files.hpp"
#include "population/judging_session.hpp"
#include "population/recorder.hpp"
#include "population/snapshot.hpp"
#include "population/summary.hpp"

namespace evo {
int check_command(const Options& options, const std::filesystem::path& file) {
  const Judged judged = JudgingSession(options).judge(file);
  fmt::print("{}\n", verdict_line(judged.fitness.verdict, judged.fitness.detail));
  return judged.fitness.ok() ? 0 : 1;
}

int accuracy_command(const Options& options, const std::vector<std::filesystem::path>& files) {
  JudgingSession session(options);
  bool right = true;
  for (const auto& file : files) {
    const Judged judged = session.verify(file);
    fmt::print("### {}\n\n{}\nVerdict: {}.\n\n", file.filename().string(),
               judged.fitness.verification ? accuracy_report(*judged.fitness.verification) : "",
               verdict_line(judged.fitness.verdict, judged.fitness.detail));
    right = right && judged.fitness.ok();
  }
  fmt::print("Backend: {}.\n", describe(session.backend().info));
  return right ? 0 : 1;
}

int export_command(const Options& options, const std::string& run, const std::string& id) {
  const std::filesystem::path folder = find_run(options.population, run);
  const Individual individual = load_individual(folder, id);
  if (!individual.fitness.ok()) {
    fmt::print(stderr, "evo: {} is not exported, for it failed: {}\n",
               short_id(individual.genome.id),
               verdict_line(individual.fitness.verdict, individual.fitness.detail));
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
