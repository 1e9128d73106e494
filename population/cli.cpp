#include "population/cli.hpp"

#include <functional>
#include <map>
#include <string>
#include <system_error>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "population/commands.hpp"
#include "population/data_folder.hpp"
#include "population/version.hpp"

namespace evo {
namespace {

constexpr const char* about =
    "evo: an evolutionary search over the ASTs of CUDA kernels.\n"
    "Without a subcommand it searches, and keeps the best correct kernel in --out at all times.";

const std::map<std::string, BackendChoice> backends{
    {"auto", BackendChoice::Auto}, {"cuda", BackendChoice::Cuda}, {"model", BackendChoice::Model}};

void add_search_options(CLI::App& app, Options& options) {
  SearchSettings& search = options.search;
  app.add_option("--generations", search.generations, "Generations after the seeds, a number")
      ->capture_default_str();
  app.add_option("--pop", search.population, "Children per generation, a number of at least 2")
      ->capture_default_str();
  app.add_option("--seed", search.seed, "Seed of all random choices, a number")
      ->capture_default_str();
  app.add_option("--time-budget", options.time_budget_s, "Stop after so many seconds [no limit]");
  app.add_option("--jobs", search.jobs, "Builds side by side, threads")->capture_default_str();
  app.add_option("--seeds", options.seeds, "Seed files (.cu) [those of the problem]");
  app.add_option("--fitness-from", options.fitness_from,
                 "A run's journal.jsonl, which gives the verdicts instead of a judge [none]");
  app.add_option("--store", options.store,
                 "What all runs have learnt [store.sqlite in the population folder]");
  app.add_flag("--fresh", options.fresh,
               "Learn nothing from the store; what is found out is added to it");
  app.add_option("--disk-limit", options.disk_limit_gib,
                 "What runs, build cache and store may take, GiB; the oldest runs go first")
      ->capture_default_str();
  app.add_option("--without", options.without, "Mutators that the search leaves out, names [none]");
  app.add_option("--incumbent", options.incumbent,
                 "An earlier export or kernel, kept while it passes and nothing beats it [none]");
}

void add_common_options(CLI::App& app, Options& options, std::string& backend, std::string& level) {
  app.add_option("--backend", backend, "Where candidates run: auto, cuda or model")
      ->capture_default_str();
  app.add_option("--device", options.device, "The card, counted from 0 [0]");
  app.add_option("--target", options.target,
                 "Architecture to build for [the card's own; sm_86 without one]");
  app.add_option("--problem", options.problem, "problem.toml, or its folder [seeds/lora of evo]");
  app.add_option("--sizes", options.sizes, "Sizes to judge at, numbers [those of the problem]")
      ->delimiter(',');
  app.add_option(
         "--level", level,
         "Cases that a contender must pass: harness (what is timed), default or strict (all)")
      ->capture_default_str();
  app.add_flag("!--no-sanitizer", options.sanitizer,
               "Make elites of what compute-sanitizer has not seen");
  app.add_option("--out", options.out, "The export [the problem's output_file, here]");
  app.add_option("--population-dir", options.population, "Folder of runs/ and the build cache")
      ->capture_default_str();
}

/// A command line: what CLI11 fills, and the subcommand to run.
struct CommandLine {
  Options options;
  std::string backend = "auto";
  std::string level = "default";
  std::vector<std::filesystem::path> files;
  std::string file;
  std::string mutator;
  std::string label;
  std::string run;
  SelftestOptions selftest;
  BenchOptions bench;
  int candidates = 300;
  bool as_export = false;
  bool leave_one_out = false;
  std::function<int()> command;
};

/// What of a resumed run's options stands on this command line.
Overrides overrides(const CLI::App& app, const Options& options) {
  const auto given = [&](const char* name, auto value) {
    return app.get_option(name)->count() > 0 ? std::optional(value) : std::nullopt;
  };
  return {.generations = given("--generations", options.search.generations),
          .jobs = given("--jobs", options.search.jobs),
          .time_budget_s = options.time_budget_s,
          .out = options.out};
}

void add_subcommands(CLI::App& app, CommandLine& line) {
  const auto add = [&](const char* name, const char* description, auto action) {
    CLI::App* sub = app.add_subcommand(name, description);
    sub->fallthrough();
    sub->final_callback([&line, action] { line.command = action; });
    return sub;
  };
  Options& options = line.options;
  add("resume", "Go on with a run that was interrupted, as if it had not been",
      [&] { return resume_command(options, line.run, overrides(app, options)); })
      ->add_option("RUN", line.run, "The run's id or folder, or latest")
      ->required();
  add("doctor", "Tell what is found on this machine and what it means",
      [&] { return doctor_command(options); });
  add("mutators", "List the mutators: name, purpose, before and after",
      [] { return mutators_command(); });
  add("propose", "List the rewrites of a kernel, mutator: label",
      [&] { return propose_command(options, line.file); })
      ->add_option("FILE", line.file, "A kernel")
      ->required();
  CLI::App* apply = add("apply", "Print a kernel after one rewrite", [&] {
    return apply_command(options, line.file, line.mutator, line.label);
  });
  apply->add_option("FILE", line.file, "A kernel")->required();
  apply->add_option("MUTATOR", line.mutator, "Its name")->required();
  apply->add_option("LABEL", line.label, "The rewrite's label, as propose prints it")->required();
  CLI::App* replay = add("replay", "Print a seed after a trail of rewrites", [&] {
    return replay_command(options, line.file, line.label, line.as_export);
  });
  replay->add_option("SEED", line.file, "A kernel")->required();
  replay->add_option("TRAIL", line.label, "A file with a line \"mutator: label\" per rewrite")
      ->required();
  replay->add_flag("--as-export", line.as_export,
                   "Print the file that PyTorch loads, which nobody has judged");
  CLI::App* climb =
      add("climb", "Print what each rewrite of a trail is worth, a Markdown table",
          [&] { return climb_command(options, line.file, line.label, line.leave_one_out); });
  climb->add_option("SEED", line.file, "A kernel")->required();
  climb->add_option("TRAIL", line.label, "A file as for replay")->required();
  climb->add_flag("--leave-one-out", line.leave_one_out,
                  "The whole trail without each rewrite instead of step by step");
  add("check", "Take a kernel through all gates and print its verdict",
      [&] { return check_command(options, line.file); })
      ->add_option("FILE", line.file, "A kernel or an export")
      ->required();
  CLI::App* bench = add("bench", "Print a kernel's verdict and its times per size, in milliseconds",
                        [&] { return bench_command(options, line.file, line.bench); });
  bench->add_option("FILE", line.file, "A kernel or an export")->required();
  bench->add_option("--against", line.bench.against,
                    "Another: which is faster, timed in turns until a test decides [none]");
  bench->add_option("--trials", line.bench.trials, "How often to compare them, a number")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI::App* selftest =
      add("selftest", "Judge kernels that cheat, which must be caught, and good ones",
          [&] { return selftest_command(options, line.selftest); });
  selftest->add_option("--zoo", line.selftest.zoo, "Folder of kernels that cheat [evo's own]");
  selftest->add_option("--only", line.selftest.only, "Names of such kernels [all]");
  selftest->add_option("--json", line.selftest.json, "A file for the results [none]");
  add("accuracy", "Print how right kernels are in every case, a Markdown table per file",
      [&] { return accuracy_command(options, line.files); })
      ->add_option("FILES", line.files, "Kernels or exports")
      ->required();
  add("stress", "Judge candidates twice, the second time with crashing and hanging ones among them",
      [&] { return stress_command(options, line.candidates); })
      ->add_option("--candidates", line.candidates, "How many, a number of at least 10")
      ->capture_default_str();
  CLI::App* exporting = add("export", "Export an individual of an earlier run",
                            [&] { return export_command(options, line.run, line.label); });
  exporting->add_option("RUN", line.run, "The run's id, or latest")->required();
  exporting->add_option("ID", line.label, "The first digits of the individual's id")->required();
}

/// What CLI11 leaves to us: the names of backend and level, contradictions, the default problem.
void complete(CommandLine& line) {
  const auto backend = backends.find(line.backend);
  if (backend == backends.end()) {
    throw InputError(
        fmt::format("there is no backend {}; choose auto, cuda or model", line.backend));
  }
  line.options.backend = backend->second;
  const auto level = level_from(line.level);
  if (!level) {
    throw InputError(
        fmt::format("there is no level {}; choose harness, default or strict", line.level));
  }
  line.options.level = *level;
  check(line.options);
  if (line.options.problem.empty()) {
    line.options.problem = data_folder() / "seeds" / "lora" / "problem.toml";
  }
}

int run_line(int argc, char** argv) {
  CommandLine line;
  line.options.search.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  line.command = [&] { return run_command(line.options); };
  CLI::App app(about, "evo");
  app.set_version_flag("--version", fmt::format("evo {}", version));
  add_common_options(app, line.options, line.backend, line.level);
  add_search_options(app, line.options);
  add_subcommands(app, line);
  app.require_subcommand(0, 1);
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() == 1) {
      option->take_last(); // a script's words may be followed by its user's
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) { // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw InputError(fmt::format("{}; see evo --help", error.what()));
  }
  complete(line);
  return line.command();
}

} // namespace

int main_of(int argc, char** argv) {
  try {
    return run_line(argc, argv);
  } catch (const InputError& error) {
    fmt::print(stderr, "evo: {}\n", error.what());
    return 2;
  } catch (const std::system_error& error) { // a full disk, say
    fmt::print(stderr, "evo: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "evo: {}\n", error.what());
    return 3;
  }
}

} // namespace evo
