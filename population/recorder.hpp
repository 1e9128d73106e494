// A run's observer: exports what is better, snapshots generations, draws progress.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "fitness/export.hpp"
#include "population/backend_info.hpp"
#include "population/clock.hpp"
#include "population/disk_limit.hpp"
#include "population/journal.hpp"
#include "population/progress.hpp"
#include "population/search.hpp"
#include "population/snapshot.hpp"
#include "population/store.hpp"

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
  /// `store`: where verdicts are kept for other runs; nullptr: nowhere.
  Recorder(Exporter exporter, const Snapshot& snapshot, Progress& progress, Journal journal,
           Store* store);

  /// Makes room now, and with later generations, but not more often than once a minute.
  void keep_within(DiskLimit limit);

  void better(const Individual& individual) override;
  void settled(const Individual& individual) override;
  void generation(const Generation& generation) override;
  void judged_again(int number, const std::vector<Individual>& individuals) override;

private:
  void keep(const Individual& individual);
  void make_room_if_due();

  std::mutex exporter_mutex_; // better() and generation() come from different threads
  Exporter exporter_;
  const Snapshot& snapshot_;
  Progress& progress_;
  Journal journal_;
  Store* store_;
  std::optional<DiskLimit> disk_limit_;
  Clock::time_point room_made_; // long ago
  bool over_limit_said_ = false;
};

} // namespace evo
