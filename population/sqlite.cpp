#include "population/sqlite.hpp"

#include <sqlite3.h>

namespace evo {
namespace {

constexpr int primary = 0xff; // of an extended result code

[[noreturn]] void fail(sqlite3* connection, int code) {
  throw SqliteError(code & primary,
                    connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(code));
}

} // namespace

void Statement::Finalizer::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void Statement::check(int code) const {
  if (code != SQLITE_OK) {
    fail(sqlite3_db_handle(statement_.get()), code);
  }
}

Statement& Statement::bind(int parameter, std::string_view text) {
  check(sqlite3_bind_text64(statement_.get(), parameter, text.data(), text.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind(int parameter, std::int64_t number) {
  check(sqlite3_bind_int64(statement_.get(), parameter, number));
  return *this;
}

Statement& Statement::bind(int parameter, double number) {
  check(sqlite3_bind_double(statement_.get(), parameter, number));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) {
    return true;
  }
  if (code != SQLITE_DONE) {
    const SqliteError error(code & primary, sqlite3_errmsg(sqlite3_db_handle(statement_.get())));
    reset();
    throw error;
  }
  reset();
  return false;
}

void Statement::run() {
  while (step()) {
  }
}

void Statement::reset() {
  sqlite3_reset(statement_.get()); // says again what step() has said
}

std::string Statement::text(int column) const {
  const auto* bytes = sqlite3_column_blob(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return {static_cast<const char*>(bytes), size};
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

void Database::Closer::operator()(sqlite3* connection) const {
  sqlite3_close(connection);
}

Database::Database(const std::filesystem::path& file, int patience_ms) {
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &connection,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  connection_.reset(connection); // there is one even where that failed
  if (code != SQLITE_OK) {
    fail(connection, code);
  }
  sqlite3_busy_timeout(connection, patience_ms);
}

void Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) {
    fail(connection_.get(), code);
  }
}

Statement Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) {
    fail(connection_.get(), code);
  }
  return Statement(statement);
}

} // namespace evo
