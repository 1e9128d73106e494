// What is never run twice: candidates that ended or hung their worker, evo or the machine, written
// down before they could.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fitness/fitness.hpp"
#include "fitness/process.hpp"

namespace evo {

/// One candidate about to run, and what it takes to run it again.
struct Attempt {
  std::string key;
  std::string source;
  std::string build_line; // how it was compiled
  std::chrono::milliseconds deadline{0};
};

struct Hazard {
  Verdict verdict = Verdict::Crash; // or Hang
  std::string detail;
  std::chrono::milliseconds deadline{0}; // what a Hang had, at least
};

/// A folder shared by runs, at the same time too. The attempt under way stands in a file of this
/// process's own, locked as long as it lives; once the lock is gone, what is left in it is a
/// hazard. A hazard is KEY.json with its source beside it, KEY.cu; beyond `limit` of them the
/// oldest go.
class Hazards {
public:
  static constexpr std::size_t default_limit = 256;

  /// Throws std::system_error where the folder cannot be written.
  explicit Hazards(std::filesystem::path folder, std::size_t limit = default_limit);
  Hazards(const Hazards&) = delete;
  Hazards& operator=(const Hazards&) = delete;
  ~Hazards();

  /// What was found here and could not be read, or was left by a process that is gone; a sentence
  /// each.
  const std::vector<std::string>& notes() const { return notes_; }

  /// A Hang counts for deadlines of up to twice the one it had.
  std::optional<Hazard> find(const std::string& key, std::chrono::milliseconds deadline) const;

  /// On disk when this returns.
  void begin(const Attempt& attempt);
  /// The attempt has come to an end: a Crash or a Hang is remembered.
  void end(const Fitness& fitness);
  /// It has come to none, and nobody knows.
  void forget();

private:
  void read_all();
  void take_over_leftovers();
  void remember(const Attempt& attempt, const Hazard& hazard);
  void drop_oldest();

  std::filesystem::path folder_;
  std::size_t limit_;
  std::vector<std::string> notes_;
  std::map<std::string, Hazard> known_;
  std::filesystem::path file_; // of the attempt under way
  UniqueFd attempt_file_;
  Attempt attempt_;
};

} // namespace evo
