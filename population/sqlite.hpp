// SQLite's C interface with destructors and exceptions, and no more of it than the store needs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace evo {

class SqliteError : public std::runtime_error {
public:
  SqliteError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const { return code_; } // a primary result code, SQLITE_FULL say

private:
  int code_;
};

/// One statement, used again and again. Whoever shares it takes turns.
class Statement {
public:
  /// Parameters count from 1.
  Statement& bind(int parameter, std::string_view text);
  Statement& bind(int parameter, std::int64_t number);
  Statement& bind(int parameter, double number);

  /// Goes to the next row; false after the last, when the statement is ready for other parameters.
  bool step();
  /// Runs a statement that gives no rows.
  void run();
  /// Gives up on the rows that are left.
  void reset();

  /// Columns of the row, counted from 0.
  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;

private:
  friend class Database;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  void check(int code) const;

  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
};

/// A connection that waits up to `patience_ms` for others to finish with the file. What it throws
/// is a SqliteError.
class Database {
public:
  Database(const std::filesystem::path& file, int patience_ms);

  void execute(const std::string& sql);
  Statement prepare(std::string_view sql);

private:
  struct Closer {
    void operator()(sqlite3* connection) const;
  };
  std::unique_ptr<sqlite3, Closer> connection_;
};

} // namespace evo
