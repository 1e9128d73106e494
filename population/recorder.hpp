// A run's observer: exports what is better, snapshots generations, draws progress.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>

#include "fitness/export.hpp"
#include "population/backend_info.hpp"
#include "population/progress.hpp"
#include "population/search.hpp"
#include "population/snapshot.hpp"

namespace evo {

/// The provenance of an export of what nobody has judged.
Provenance unjudged(const Genome& genome);

/// The provenance of an individual's export.
Provenance provenance(const Individual& individual, const BackendInfo& backend,
                      std::uint64_t run_seed);

/// Keeps the exported file the best of the run.
class Exporter {
public:
  Exporter(Problem problem, BackendInfo backend, std::uint64_t run_seed,
           std::filesystem::path file);

  /// What stands for the individual of that id: an earlier export, with its own provenance.
  void keep(std::string id, std::string text);

  /// Replaces the file; InputError when it cannot be written, and the old one stands.
  void write(const Individual& individual);
  /// Writes the last text again when the file is not there any more.
  void restore() const;

private:
  void put() const;

  Problem problem_;
  BackendInfo backend_;
  std::uint64_t run_seed_;
  std::filesystem::path file_;
  std::string kept_id_;
  std::string kept_text_;
  std::string text_; // the file's
};

class Recorder : public Observer {
public:
  Recorder(Exporter exporter, const Snapshot& snapshot, Progress& progress);

  void better(const Individual& individual) override;
  void settled(const Individual& individual) override;
  void generation(const Generation& generation) override;

private:
  std::mutex exporter_mutex_; // better() and generation() come from different threads
  Exporter exporter_;
  const Snapshot& snapshot_;
  Progress& progress_;
};

} // namespace evo
