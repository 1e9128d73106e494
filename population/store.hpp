// What all runs have learnt: every verdict, by what it holds for. An SQLite file that runs share,
// at the same time too.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "population/context.hpp"
#include "population/individual.hpp"
#include "population/sqlite.hpp"

namespace evo {

/// Thread-safe. Everything throws InputError, one sentence, where the file does not do its part.
class Store {
public:
  /// Makes the file, or opens it. A writer waits so long for another one's turn.
  Store(std::filesystem::path file, const Context& context,
        std::chrono::milliseconds patience = std::chrono::seconds(10));

  /// What became of the source of that id in this context; without its source, and nothing of what
  /// tells of its place in a run.
  std::optional<Individual> find(const std::string& id) const;

  /// On record when this returns, whatever becomes of the process. Replaces what was known.
  void put(const Individual& individual);

  /// Drops what was known in this context.
  void forget(const std::string& id);

  /// The fastest of this subject that are no duplicates, up to `count` of each context.
  std::vector<Individual> fittest(std::size_t count) const;

  /// Verdicts in this context.
  std::size_t size() const;

private:
  void prepare_file();
  std::int64_t context_id(const Context& context);
  template <typename Action> auto guarded(const char* what, Action action) const;

  std::filesystem::path file_;
  mutable std::mutex mutex_;  // of the connection and its statements
  mutable Database database_; // reading takes statements, too
  std::int64_t context_ = 0;
  std::string subject_;
  mutable std::optional<Statement> find_;
  std::optional<Statement> put_;
};

} // namespace evo
