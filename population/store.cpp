#include "population/store.hpp"

#include <utility>

#include <fmt/core.h>
#include <sqlite3.h>

#include "fitness/problem.hpp"
#include "population/run_log.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;

constexpr int layout = 1; // of the tables

constexpr const char* tables = R"(
CREATE TABLE IF NOT EXISTS contexts(
  id INTEGER PRIMARY KEY, subject TEXT NOT NULL, terms TEXT NOT NULL, UNIQUE(subject, terms));
CREATE TABLE IF NOT EXISTS verdicts(
  context INTEGER NOT NULL REFERENCES contexts, source TEXT NOT NULL,
  pace REAL NOT NULL, -- as parents are chosen by; 0 of duplicates
  individual TEXT NOT NULL, PRIMARY KEY(context, source)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_pace ON verdicts(context, pace) WHERE pace > 0;
)";

std::string reason(const SqliteError& error) {
  switch (error.code()) {
  case SQLITE_FULL:
    return "the disk is full; make room";
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return "another program holds it; wait for that one, or name another store with --store";
  case SQLITE_READONLY:
  case SQLITE_CANTOPEN:
  case SQLITE_PERM:
    return "it cannot be made or changed there; name another with --store";
  case SQLITE_NOTADB:
  case SQLITE_CORRUPT:
    return "it is damaged, or no store; move it away, or name another with --store";
  default:
    return fmt::format("{}; name another with --store", error.what());
  }
}

[[noreturn]] void refuse(const char* what, const fs::path& file, const std::string& why) {
  throw InputError(fmt::format("cannot {} the store {}: {}", what, file.string(), why));
}

Database opened(const fs::path& file, std::chrono::milliseconds patience) {
  try {
    if (file.has_parent_path()) {
      fs::create_directories(file.parent_path());
    }
    return Database(file, static_cast<int>(patience.count()));
  } catch (const fs::filesystem_error& error) {
    refuse("open", file, fmt::format("{}; name another with --store", error.code().message()));
  } catch (const SqliteError& error) {
    refuse("open", file, reason(error));
  }
}

Individual individual_from(const std::string& row) {
  return nlohmann::json::parse(row).get<Individual>();
}

} // namespace

template <typename Action> auto Store::guarded(const char* what, Action action) const {
  const std::lock_guard lock(mutex_);
  try {
    return action();
  } catch (const SqliteError& error) {
    refuse(what, file_, reason(error));
  } catch (const nlohmann::json::exception&) {
    refuse(what, file_, "it is damaged; move it away, or name another with --store");
  }
}

Store::Store(fs::path file, const Context& context, std::chrono::milliseconds patience)
    : file_(std::move(file)), database_(opened(file_, patience)),
      subject_(to_line(context.subject)) {
  guarded("open", [&] {
    prepare_file();
    context_ = context_id(context);
    find_ = database_.prepare("SELECT individual FROM verdicts WHERE context = ? AND source = ?");
    put_ = database_.prepare("INSERT OR REPLACE INTO verdicts VALUES(?, ?, ?, ?)");
  });
}

/// A killed process loses nothing; a machine that fails, at most the last verdicts.
void Store::prepare_file() {
  database_.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE");
  Statement version = database_.prepare("PRAGMA user_version");
  version.step();
  const std::int64_t found = version.integer(0);
  version.reset();
  if (found != 0 && found != layout) {
    refuse("open", file_,
           "it is of another version of evo; move it away, or name another with --store");
  }
  database_.execute(tables);
  database_.execute(fmt::format("PRAGMA user_version = {}; COMMIT", layout));
}

std::int64_t Store::context_id(const Context& context) {
  const std::string terms = to_line(context.terms);
  database_.prepare("INSERT OR IGNORE INTO contexts(subject, terms) VALUES(?, ?)")
      .bind(1, subject_)
      .bind(2, terms)
      .run();
  Statement select = database_.prepare("SELECT id FROM contexts WHERE subject = ? AND terms = ?");
  select.bind(1, subject_).bind(2, terms).step();
  return select.integer(0);
}

std::optional<Individual> Store::find(const std::string& id) const {
  return guarded("read", [&]() -> std::optional<Individual> {
    if (!find_->bind(1, context_).bind(2, id).step()) {
      return std::nullopt;
    }
    const std::string row = find_->text(0);
    find_->reset();
    return individual_from(row);
  });
}

void Store::put(const Individual& individual) {
  guarded("write", [&] {
    put_->bind(1, context_)
        .bind(2, individual.genome.id)
        .bind(3, individual.pace())
        .bind(4, to_line(individual))
        .run();
  });
}

void Store::forget(const std::string& id) {
  guarded("write", [&] {
    database_.prepare("DELETE FROM verdicts WHERE context = ? AND source = ?")
        .bind(1, context_)
        .bind(2, id)
        .run();
  });
}

std::vector<Individual> Store::fittest(std::size_t count) const {
  return guarded("read", [&] {
    Statement contexts = database_.prepare("SELECT id FROM contexts WHERE subject = ? ORDER BY id");
    Statement best = database_.prepare("SELECT individual FROM verdicts WHERE context = ? AND "
                                       "pace > 0 ORDER BY pace DESC, source LIMIT ?");
    std::vector<Individual> result;
    contexts.bind(1, subject_);
    while (contexts.step()) {
      best.bind(1, contexts.integer(0)).bind(2, static_cast<std::int64_t>(count));
      while (best.step()) {
        result.push_back(individual_from(best.text(0)));
      }
    }
    return result;
  });
}

std::size_t Store::size() const {
  return guarded("read", [&] {
    Statement count = database_.prepare("SELECT count(*) FROM verdicts WHERE context = ?");
    count.bind(1, context_).step();
    return static_cast<std::size_t>(count.integer(0));
  });
}

} // namespace evo
