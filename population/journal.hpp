// journal.jsonl of a run: each verdict as it was given, a line each, so that none is lost with the
// process. A line that tells of the setting stands before those that it holds for. Verdicts of a
// journal can be given again instead of judging (recorded_evaluator.hpp).
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "population/backend_info.hpp"
#include "population/context.hpp"
#include "population/individual.hpp"

namespace evo {

inline constexpr const char* journal_file = "journal.jsonl"; // in a run's folder

/// Where and under which conditions a run goes on.
struct Setting {
  Context context;
  BackendInfo backend;
};

/// What a journal holds.
struct Recorded {
  struct Entry {
    Individual individual; // without its source
    std::size_t setting = 0;
  };
  std::vector<Setting> settings;
  std::map<std::string, Entry> verdicts; // by id, the last of each
  std::size_t damaged_lines = 0;         // they are left out
};

/// InputError when the file cannot be read.
Recorded read_journal(const std::filesystem::path& file);

class Journal {
public:
  /// Goes on after the last whole line.
  Journal(std::filesystem::path file, Setting setting);

  /// The system has it when this returns. Nothing for what has no verdict of its own. InputError
  /// when it cannot be written.
  void add(const Individual& individual);

private:
  std::filesystem::path file_;
  Setting setting_;
  bool setting_said_ = false;
};

} // namespace evo
