#include "population/recorder.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "population/files.hpp"

namespace evo {
namespace {

constexpr std::chrono::minutes between_disk_checks{1};

} // namespace

Provenance unjudged(const Genome& genome) {
  Provenance result;
  result.id = genome.id;
  result.seed_file = genome.seed;
  result.trail = to_strings(genome.trail);
  result.judged = false;
  return result;
}

Provenance provenance(const Individual& individual, const BackendInfo& backend,
                      std::uint64_t run_seed) {
  Provenance result = unjudged(individual.genome);
  result.run_seed = run_seed;
  result.card = backend.card;
  result.toolkit = backend.toolkit;
  result.fitness = individual.fitness;
  result.judged = true;
  return result;
}

Exporter::Exporter(Problem problem, BackendInfo backend, std::uint64_t run_seed,
                   std::filesystem::path file)
    : problem_(std::move(problem)), backend_(std::move(backend)), run_seed_(run_seed),
      file_(std::move(file)) {}

void Exporter::keep(std::string id, std::string text) {
  kept_id_ = std::move(id);
  kept_text_ = std::move(text);
}

void Exporter::write(const Individual& individual) {
  const Genome& genome = individual.genome;
  text_ = genome.id == kept_id_
              ? kept_text_
              : export_text(problem_, genome.source, provenance(individual, backend_, run_seed_));
  put();
}

void Exporter::restore() const {
  if (!text_.empty() && !std::filesystem::exists(file_)) {
    put();
  }
}

void Exporter::put() const {
  replace_text(file_, text_);
}

Recorder::Recorder(Exporter exporter, const Snapshot& snapshot, Progress& progress, Journal journal,
                   Store* store)
    : exporter_(std::move(exporter)), snapshot_(snapshot), progress_(progress),
      journal_(std::move(journal)), store_(store) {}

void Recorder::better(const Individual& individual) {
  const std::lock_guard lock(exporter_mutex_);
  exporter_.write(individual);
}

void Recorder::settled(const Individual& individual) {
  journal_.add(individual);
  keep(individual);
  progress_.settled(individual);
}

void Recorder::generation(const Generation& generation) {
  if (generation.past) {
    snapshot_.log(generation);
    return;
  }
  {
    const std::lock_guard lock(exporter_mutex_);
    exporter_.restore();
  }
  snapshot_.add(generation, progress_.generation_seconds(), progress_.busy_share());
  progress_.generation(generation);
  make_room_if_due();
}

void Recorder::judged_again(int number, const std::vector<Individual>& individuals) {
  snapshot_.add_judged_again(number, individuals);
  std::ranges::for_each(individuals, [this](const Individual& each) { keep(each); });
  progress_.resume(number, individuals);
}

void Recorder::keep(const Individual& individual) {
  if (store_ != nullptr && individual.has_own_verdict() && !individual.known) {
    store_->put(individual);
  }
}

void Recorder::keep_within(DiskLimit limit) {
  disk_limit_ = std::move(limit);
  make_room_if_due();
}

void Recorder::make_room_if_due() {
  if (!disk_limit_ || Clock::now() - room_made_ < between_disk_checks) {
    return;
  }
  room_made_ = Clock::now();
  const std::string note = make_room(*disk_limit_);
  if (!note.empty() && !std::exchange(over_limit_said_, true)) {
    fmt::print("Note: {}\n", note);
  }
}

} // namespace evo
